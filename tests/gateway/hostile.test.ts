/** Requests that once broke the shared connection, or were answered as a fault of the gateway. */
import { expect, test } from "bun:test";
import { connect } from "node:net";
import { rawHttp } from "../support/raw_http.ts";
import { redisForFile } from "../support/redis_fixture.ts";

const stage = redisForFile({ token: "secret" });

const headers = { authorization: "Bearer secret" };

async function post(path: string, body: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${stage.gateway.url}${path}`, { method: "POST", headers, body });
  return { status: response.status, body: await response.json() };
}

test("a word that is refused is refused as a raw body too", async () => {
  for (const [path, body] of [
    ["/script?SYNC", "DEBUG"],
    ["/script?SYNC", "debug"],
    ["/client?ON", "REPLY"],
    ["/xread?600000&STREAMS&k&$", "BLOCK"],
    ["/xreadgroup/GROUP/a/b?600000&STREAMS&k&>", "block"],
  ] as const) {
    const answer = await post(path, body);
    expect([path, answer.status]).toEqual([path, 400]);
    expect(JSON.stringify(answer.body)).toContain("is not available");
  }
  expect(await post("/", '["EVAL","return 1",0]')).toEqual({ status: 200, body: { result: 1 } });
  // A long one is data.
  expect((await post("/set/k", "BLOCK".repeat(100))).status).toBe(200);
});

test("a number beyond a double's beside arrays thousands deep is a bad request", async () => {
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  for (const [path, body] of [
    ["/", `[1e400,${deep}]`],
    ["/pipeline", `[[1e400,${deep}]]`],
    ["/multi-exec", `[[1e400,${deep}]]`],
  ] as const) {
    const answer = await post(path, body);
    expect([answer.status, Object.keys(answer.body as object)]).toEqual([400, ["error"]]);
  }
});

test("a Host header that is missing or no host is a bad request, with and without the token", async () => {
  for (const host of ["Host: [", "Host: a b", "Host:", "Host: a/b"]) {
    for (const path of ["/", "/get/k", "/get/k?_token=secret", "/get/k?_token=wrong", "/subscribe/c"]) {
      for (const auth of ["", "Authorization: Bearer secret\r\n"]) {
        const request = `GET ${path} HTTP/1.1\r\n${host}\r\n${auth}Connection: close\r\n\r\n`;
        const answer = await rawHttp(stage.gateway.port, request);
        expect(answer).toStartWith("HTTP/1.1 400 ");
        expect(answer).toEndWith('{"error":"ERR the Host header is missing or malformed"}');
      }
    }
  }
  expect(await rawHttp(stage.gateway.port, "GET /get/k?_token=secret HTTP/1.0\r\n\r\n")).toStartWith(
    "HTTP/1.1 400 ",
  );
});

test("a subscriber that does not read is cut off, and what waits for it is bounded", async () => {
  const socket = connect(stage.gateway.port, "127.0.0.1");
  socket.pause();
  socket.on("error", () => {});
  socket.write(
    "POST /subscribe/flood HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer secret\r\nContent-Length: 0\r\n\r\n",
  );
  const deadline = performance.now() + 20_000;
  const readers = async () =>
    Number(((await stage.server.command("PUBSUB", "NUMSUB", "flood")) as unknown[])[1]);
  while ((await readers()) === 0) expect(performance.now()).toBeLessThan(deadline);
  const message = "x".repeat(1_000_000);
  let sent = 0;
  while ((await readers()) > 0) {
    await stage.server.command("PUBLISH", "flood", message);
    sent += 1;
    expect(sent).toBeLessThan(200);
  }
  // One that reads gets as much and more.
  const reading = await fetch(`${stage.gateway.url}/subscribe/flood`, { method: "POST", headers });
  const reader = (reading.body as ReadableStream<Uint8Array>).getReader();
  let bytes = 0;
  for (let at = 0; at < 40; at++) {
    await stage.server.command("PUBLISH", "flood", message);
    for (; bytes < (at + 1) * message.length; ) bytes += (await reader.read()).value?.length ?? Number.NaN;
  }
  expect(bytes).toBeGreaterThan(40_000_000);
  expect(await readers()).toBe(1);
  await reader.cancel();
  socket.destroy();
}, 30_000);
