/** Connections that say nothing: closed in time, whatever path they asked for; a drain may take as long as it takes. */
import { expect, test } from "bun:test";
import { serveHttp } from "../../runtimes/bun/http_server.ts";
import { definitionOf, openApp } from "../http/fixture.ts";
import { TOKEN } from "./hostile.ts";

/** Opens a connection and sends this; resolves with what was answered once the server closes it. */
function held(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        open: (socket) => void socket.write(text),
        data: (_socket, bytes) => {
          answer += bytes.toString();
        },
        close: () => resolve(answer),
      },
    }).catch(reject);
  });
}

test("so does one whose path is written in another way", async () => {
  const silence = Promise.withResolvers<void>();
  // One lock each: they run side by side.
  const apps = ["/v1/drain/", "/v1/%64rain", "/v1/drain"].map((path) => ({
    path,
    app: openApp({ definition: definitionOf(() => silence.promise) }),
  }));
  const server = serveHttp(
    { host: "127.0.0.1", port: 0 },
    (request) =>
      (apps.find(({ path }) => new URL(request.url).pathname === path) ?? apps[0]!).app.fetch(request),
    1,
  );
  try {
    const drains = [];
    for (const { path, app } of apps) {
      await app.request("http://127.0.0.1/v1/queues/emails/jobs", {
        method: "POST",
        body: '{"to":"a@b.example"}',
      });
      drains.push(fetch(server.url + path, { method: "POST" }));
    }
    // One that is silent for longer than any may be.
    const port = Number(new URL(server.url).port);
    expect(await held(port, "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")).toContain(" 200 ");
    silence.resolve();
    for (const drain of drains) expect(await (await drain).json()).toMatchObject({ jobs: 1, acked: 1 });
  } finally {
    silence.resolve();
    await server.stop(0);
  }
}, 20_000);

test("a silent connection is closed, also one that asked for a drain; a drain outlives the limit", async () => {
  const silence = Promise.withResolvers<void>();
  const app = openApp({ definition: definitionOf(() => silence.promise), requireToken: true, token: TOKEN });
  const server = serveHttp({ host: "127.0.0.1", port: 0 }, (request) => app.fetch(request), 1);
  try {
    const port = Number(new URL(server.url).port);
    const headers = { authorization: `Bearer ${TOKEN}` };
    const jobs = `${server.url}/v1/queues/emails/jobs`;
    await fetch(jobs, { method: "POST", headers, body: '{"to":"ada@example.com"}' });
    const draining = fetch(`${server.url}/v1/drain`, { method: "POST", headers });
    const refused = await Promise.all([
      held(port, "GET /v1/queues HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
      held(port, "POST /v1/drain HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"),
      held(port, "POST /v1/drain HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"),
    ]);
    for (const answer of refused) expect(answer).toStartWith("HTTP/1.1 401 ");
    // The connection of the drain has been silent for as long.
    silence.resolve();
    expect(await (await draining).json()).toMatchObject({ jobs: 1, acked: 1 });
  } finally {
    silence.resolve();
    await server.stop(0);
  }
}, 20_000);
