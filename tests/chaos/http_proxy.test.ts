/** The HTTP fault proxy itself: each fault has the effect on the target that it names, and the answer. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type HttpFault, HttpProxy, PASS, seededFaults } from "../support/http_proxy.ts";

let effects = 0;
let onEffect: () => void = () => {};
let proxy: HttpProxy;
const target = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const text = await request.text();
    effects += 1;
    onEffect();
    return new Response(`effect of ${text}`, { headers: { "content-type": "text/plain" } });
  },
});

beforeAll(async () => {
  proxy = await HttpProxy.start(`http://127.0.0.1:${target.port}`);
});
afterAll(async () => {
  await proxy.stop();
  await target.stop(true);
});
beforeEach(() => {
  effects = 0;
});

async function send(fault: HttpFault, signal?: AbortSignal): Promise<{ status: number; text: string }> {
  proxy.script = () => fault;
  const init: RequestInit = { method: "POST", body: "a job" };
  if (signal !== undefined) init.signal = signal;
  const answer = await fetch(`${proxy.url}/path?query=1`, init);
  return { status: answer.status, text: await answer.text() };
}

test("what passes, is delayed or repeated is answered by the target", async () => {
  const answered = { status: 200, text: "effect of a job" };
  expect(await send(PASS)).toEqual(answered);
  expect(await send({ kind: "delay", thereMs: 1, backMs: 1 })).toEqual(answered);
  expect(effects).toBe(2);
  expect(await send({ kind: "repeat" })).toEqual(answered);
  expect(effects).toBe(4);
});

test("a cut has no effect; a lost reply and a truncated one have", async () => {
  await expect(send({ kind: "cut" })).rejects.toThrow();
  expect(effects).toBe(0);
  await expect(send({ kind: "loseReply" })).rejects.toThrow();
  expect(effects).toBe(1);
  await expect(send({ kind: "truncate" })).rejects.toThrow();
  expect(effects).toBe(2);
});

test("a stall is never answered and has its effect, what is half-open has none", async () => {
  const controller = new AbortController();
  const happened = new Promise<void>((resolve) => {
    onEffect = resolve;
  });
  const stalled = send({ kind: "stall" }, controller.signal);
  await happened;
  const halfOpens = () => proxy.log.records.filter(({ kind }) => kind === "halfOpen").length;
  const seen = halfOpens();
  const halfOpen = send({ kind: "halfOpen" }, controller.signal);
  while (halfOpens() === seen) await new Promise((resolve) => setImmediate(resolve));
  const ends = Promise.allSettled([stalled, halfOpen]);
  controller.abort();
  expect((await ends).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(effects).toBe(1);
});

test("an answer of its own is HTML and has no effect", async () => {
  for (const status of [401, 429, 500, 502] as const) {
    expect(await send({ kind: "status", status })).toEqual({
      status,
      text: `<html><body><h1>${status}</h1></body></html>`,
    });
  }
  expect(effects).toBe(0);
});

test("a seed draws the same faults each time, about as often as asked, and of every kind", () => {
  const kinds: HttpFault[] = [{ kind: "cut" }, { kind: "loseReply" }, { kind: "repeat" }];
  const draw = (seed: number) => {
    const script = seededFaults(seed, 10, kinds);
    return Array.from({ length: 2_000 }, (_, n) => script(n + 1, "/").kind);
  };
  expect(draw(7)).toEqual(draw(7));
  expect(draw(7)).not.toEqual(draw(8));
  expect(new Set(draw(7))).toEqual(new Set(["pass", "cut", "loseReply", "repeat"]));
  const hit = draw(7).filter((kind) => kind !== "pass").length;
  expect(hit).toBeGreaterThan(120);
  expect(hit).toBeLessThan(280);
});
