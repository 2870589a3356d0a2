/**
 * Enqueues by HTTP through a network with faults: whatever becomes of an answer, the same request may be sent again until one comes, and each job is in the queue once.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createApp } from "../../src/http/mod.ts";
import { memoryBroker, platform } from "../http/fixture.ts";
import { type HttpFault, HttpProxy, PASS } from "../support/http_proxy.ts";

const TIMEOUT_MS = 300;
const LINES = 20;

/** Whether the first try takes effect although its answer is none. */
const FAULTS: readonly (readonly [fault: HttpFault, takesEffect: boolean])[] = [
  [{ kind: "cut" }, false],
  [{ kind: "halfOpen" }, false],
  [{ kind: "status", status: 401 }, false],
  [{ kind: "status", status: 429 }, false],
  [{ kind: "status", status: 500 }, false],
  [{ kind: "status", status: 502 }, false],
  [{ kind: "stall" }, true],
  [{ kind: "loseReply" }, true],
  [{ kind: "truncate" }, true],
];

const app = createApp({ broker: memoryBroker(), platform, requireToken: false });
const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => app.fetch(request) });
let proxy: HttpProxy;
beforeAll(async () => {
  proxy = await HttpProxy.start(`http://127.0.0.1:${server.port}`);
});
afterAll(async () => {
  await proxy.stop();
  await server.stop(true);
});

type Sent = { readonly body: string; readonly headers: Record<string, string> };

/** What was answered, if that was an answer of Eddy's. */
async function send(queue: string, sent: Sent): Promise<Record<string, unknown> | undefined> {
  const init = { method: "POST", ...sent, signal: AbortSignal.timeout(TIMEOUT_MS) };
  try {
    const answer = await fetch(`${proxy.url}/v1/queues/${queue}/jobs`, init);
    return answer.ok ? ((await answer.json()) as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** The ids of a queue's jobs, in order. */
async function ids(queue: string): Promise<string[]> {
  const answer = await app.request(`http://127.0.0.1/v1/queues/${queue}/ready?limit=100`);
  const { jobs } = (await answer.json()) as { jobs: { id: string }[] };
  return jobs.map(({ id }) => id);
}

describe("the first answer is lost", () => {
  for (const [fault, takesEffect] of FAULTS) {
    const name = fault.kind === "status" ? `status-${fault.status}` : fault.kind;

    test(`${name}: one job`, async () => {
      const sent = { body: '"x"', headers: { "eddy-id": "mine" } };
      proxy.script = () => fault;
      expect(await send(`one-${name}`, sent)).toBeUndefined();
      proxy.script = () => PASS;
      expect(await send(`one-${name}`, sent)).toEqual({ id: "mine", duplicate: takesEffect });
      expect(await ids(`one-${name}`)).toEqual(["mine"]);
    });

    test(`${name}: many lines`, async () => {
      const sent = {
        body: Array.from({ length: LINES }, (_, n) => `"${n}"\n`).join(""),
        headers: { "eddy-id": "mine", "content-type": "application/x-ndjson" },
      };
      const lines = Array.from({ length: LINES }, (_, n) => `mine.${n + 1}`);
      proxy.script = () => fault;
      expect(await send(`many-${name}`, sent)).toBeUndefined();
      proxy.script = () => PASS;
      const accepted = lines.map((id, n) => ({ line: n + 1, id, duplicate: takesEffect }));
      expect(await send(`many-${name}`, sent)).toEqual({ accepted, rejected: [] });
      expect(await ids(`many-${name}`)).toEqual(lines);
    });
  }
});

test("a request that a box in between sends twice adds its jobs once", async () => {
  proxy.script = () => ({ kind: "repeat" });
  const sent = { body: '"a"\n"b"\n', headers: { "eddy-id": "mine", "content-type": "application/x-ndjson" } };
  const answer = await send("repeated", sent);
  proxy.script = () => PASS;
  expect(answer).toMatchObject({ rejected: [] });
  expect(await ids("repeated")).toEqual(["mine.1", "mine.2"]);
});
