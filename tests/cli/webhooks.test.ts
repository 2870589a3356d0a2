/** The webhook example as people run it: a script that enqueues, a worker that reads the environment. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { join, resolve } from "node:path";
import { startSink } from "../examples/sink.ts";
import { eddy, RunningCommand, scratch } from "./process.ts";

// Each test starts processes.
setDefaultTimeout(30_000);

const ROOT = resolve(import.meta.dir, "../..");
const SECRET = "hush-secret";

test("every example payload is enqueued by the script and delivered by the worker", async () => {
  await using folder = await scratch();
  await using sink = startSink(SECRET);
  const script = join(ROOT, "examples/webhooks_enqueue.ts");
  await using enqueue = new RunningCommand([process.execPath, script, "--broker", "sqlite:eddy.sqlite"], {
    cwd: folder.path,
  });
  const sent = await enqueue.ended();
  const count = Number(/^webhooks: (\d+) payloads accepted\n$/.exec(sent.out)?.[1]);
  expect([sent.code, sent.err]).toEqual([0, ""]);
  expect(count).toBeGreaterThan(300);

  const env = { EDDY_WEBHOOK_URL: sink.url, EDDY_WEBHOOK_SECRET: SECRET };
  const drained = await eddy(["drain", join(ROOT, "examples/webhooks.ts")], { cwd: folder.path, env });
  expect(drained.code).toBe(0);
  expect(drained.out).toStartWith(`Drained ${count} deliveries (${count} acked) in `);
  expect(drained.out + drained.err).not.toContain(SECRET);
  expect(new Set(sink.accepted.map((one) => one.delivery)).size).toBe(count);
  expect(sink.unsigned).toBe(0);
});

test("without its settings the worker says which are missing", async () => {
  await using folder = await scratch();
  const file = join(ROOT, "examples/webhooks.ts");
  const { code, err } = await eddy(["worker", file], {
    cwd: folder.path,
    env: { EDDY_WEBHOOK_SECRET: SECRET },
  });
  expect(code).toBe(1);
  expect(err).toContain("EDDY_WEBHOOK_URL");
  expect(err).not.toContain(SECRET);
});
