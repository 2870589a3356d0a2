/** What a request asks for and the app does not know is refused with what there is instead, never passed over. */
import { describe, expect, test } from "bun:test";
import { ask, expectRefusal, openApp, post } from "./fixture.ts";

const GOOD = '{"to":"ada@example.com"}';
const JOBS = "/v1/queues/emails/jobs";

describe("an enqueue", () => {
  test("with an unknown eddy- header is refused: it is named, and the known ones are listed", async () => {
    const app = openApp();
    for (const type of ["application/json", "application/x-ndjson"]) {
      const answer = await post(app, JOBS, GOOD, { "Content-Type": type, "Eddy-Dely-Ms": "60000" });
      expectRefusal(answer, 400, "invalid-header", "60000");
      for (const name of ["eddy-dely-ms", "eddy-id", "eddy-delay-ms", "eddy-priority", "eddy-header-NAME"]) {
        expect(answer.json.error).toContain(name);
      }
      expect(answer.json.error).toStartWith("Cannot use the header eddy-dely-ms: it is unknown; ");
    }
    const two = await post(app, JOBS, GOOD, { "Eddy-A": "1", "Eddy-B": "2" });
    expect(two.json.error).toStartWith("Cannot use the headers eddy-a, eddy-b: they are unknown; ");
    expect((await ask(app, "/v1/queues/emails/ready")).json.jobs).toEqual([]);
  });

  test("with a parameter is refused, told where options go", async () => {
    const app = openApp();
    for (const query of ["delayMs=60000", "eddy-delay-ms=60000", "__proto__=60000", "constructor=60000"]) {
      const answer = await post(app, `${JOBS}?${query}`, GOOD);
      expectRefusal(answer, 400, "invalid-parameter", "60000");
      expect(answer.json.error).toContain(query.split("=")[0]!);
      expect(answer.json.error).toContain("eddy-delay-ms");
    }
    expect((await ask(app, "/v1/queues/emails/ready")).json.jobs).toEqual([]);
  });

  test("many unknown names, and names that are no words, make no long refusal", async () => {
    const query = `${"x".repeat(5_000)}&a%20b&${Array.from({ length: 500 }, (_, i) => `p${i}`).join("&")}`;
    const answer = await post(openApp(), `${JOBS}?${query}`, GOOD);
    expectRefusal(answer, 400, "invalid-parameter", "xxxxx", "a b");
    expect(answer.text.length).toBeLessThan(400);
  });
});

describe("a look", () => {
  test("takes bodies=true or false and nothing else", async () => {
    const app = openApp();
    await post(app, JOBS, GOOD);
    for (const value of ["1", "TRUE", "yes", "", "hush"]) {
      expectRefusal(
        await ask(app, `/v1/queues/emails/ready?bodies=${value}`),
        400,
        "invalid-parameter",
        "hush",
      );
    }
    const shown = await ask(app, "/v1/queues/emails/ready?bodies=true");
    expect(shown.json.jobs).toEqual([expect.objectContaining({ body: GOOD })]);
    expect((await ask(app, "/v1/queues/emails/ready?bodies=false")).text).not.toContain("ada");
  });

  test("with an unknown parameter, or one given twice, is refused and told the known ones", async () => {
    const app = openApp();
    const unknown = await ask(app, "/v1/queues/emails/ready?limt=5");
    expectRefusal(unknown, 400, "invalid-parameter");
    expect(unknown.json.error).toContain("limt");
    expect(unknown.json.error).toContain("limit and bodies");
    const twice = await ask(app, "/v1/queues/emails/ready?limit=5&limit=6");
    expectRefusal(twice, 400, "invalid-parameter");
    expect(twice.json.error).toContain("more than once");
    expectRefusal(await ask(app, "/v1/queues?limit=5"), 400, "invalid-parameter");
  });
});

describe("tending", () => {
  test("does nothing when its options come as parameters", async () => {
    const app = openApp();
    for (const verb of ["redrive", "clear", "pause", "resume"]) {
      const answer = await post(app, `/v1/queues/emails/${verb}?limit=5`, '{"states":["ready"]}');
      expectRefusal(answer, 400, "invalid-parameter");
    }
    expectRefusal(await post(app, "/v1/drain?maxJobs=1"), 400, "invalid-parameter");
    expect((await ask(app, "/v1/queues")).text).toContain('"paused":false');
  });

  test("with options that do not fit tells which there are", async () => {
    const app = openApp();
    for (const body of ["", '{"states":["redy"]}', '{"state":["ready"]}']) {
      const answer = await post(app, "/v1/queues/emails/clear", body);
      expectRefusal(answer, 422, "invalid-options", "redy");
      expect(answer.json.error).toContain('"ready", "delayed" and "dead"');
    }
    const redrive = await post(app, "/v1/queues/emails/redrive", '{"id":"a"}');
    expectRefusal(redrive, 422, "invalid-options");
    expect(redrive.json.error).toContain("give ids");
    const drain = await post(app, "/v1/drain", '{"jobs":1}');
    expectRefusal(drain, 422, "invalid-options");
    expect(drain.json.error).toContain("maxJobs");
  });

  test("options that are no UTF-8 are not read as something else", async () => {
    const bytes = new Uint8Array([...new TextEncoder().encode('{"ids":["'), 0xff, 0x22, 0x5d, 0x7d]);
    expectRefusal(await post(openApp(), "/v1/queues/emails/redrive", bytes), 400, "malformed-json");
  });
});

describe("a wrong method", () => {
  const PATHS = [
    ["/health", "GET, HEAD"],
    ["/metrics", "GET, HEAD"],
    ["/v1/queues", "GET, HEAD"],
    ["/v1/queues/emails/ready", "GET, HEAD"],
    ["/v1/queues/emails/dead", "GET, HEAD"],
    ["/v1/queues/emails/jobs", "POST"],
    ["/v1/queues/emails/redrive", "POST"],
    ["/v1/queues/emails/clear", "POST"],
    ["/v1/queues/emails/pause", "POST"],
    ["/v1/queues/emails/resume", "POST"],
    ["/v1/drain", "POST"],
  ] as const;

  test("on a path that there is gets 405 and the right ones", async () => {
    const app = openApp();
    for (const [path, allow] of PATHS) {
      for (const method of ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"]) {
        if (allow.split(", ").includes(method)) continue;
        const response = await app.request(`http://127.0.0.1${path}`, { method });
        expect([path, method, response.status]).toEqual([path, method, 405]);
        expect(response.headers.get("allow")).toBe(allow);
        if (method !== "HEAD") {
          expect(await response.json()).toMatchObject({ code: "wrong-method", allow: allow.split(", ") });
        }
      }
      if (allow === "GET, HEAD")
        expect((await app.request(`http://127.0.0.1${path}`, { method: "HEAD" })).status).toBe(200);
    }
  });

  test("is not told to who may not get in", async () => {
    const app = openApp({ token: "hush", requireToken: true });
    expectRefusal(await ask(app, "/v1/drain"), 401, "unauthorized");
    expectRefusal(await ask(app, "/metrics", { method: "POST" }), 401, "unauthorized");
  });
});

test("a sender that breaks off is no fault of the server", async () => {
  const logged: unknown[] = [];
  const app = openApp({ log: (...line) => logged.push(line) });
  for (const [path, type] of [
    [JOBS, "application/json"],
    [JOBS, "application/x-ndjson"],
    ["/v1/drain", "application/json"],
  ] as const) {
    const body = new ReadableStream({
      pull(controller) {
        controller.error(new Error("hush"));
      },
    });
    expectRefusal(await post(app, path, body, { "Content-Type": type }), 400, "cut-off", "hush");
  }
  expect(logged).toEqual([]);
});
