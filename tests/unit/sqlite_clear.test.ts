import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunSqlite } from "../../adapters/sqlite/bun_driver.ts";
import { SqliteBroker } from "../../adapters/sqlite/mod.ts";
import { job, put } from "../support/conformance_steps.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "eddy-clear-"));
});
afterAll(() => rm(folder, { recursive: true }));

test("jobs that come while a queue is being cleared are kept", async () => {
  const broker = new SqliteBroker({ database: bunSqlite({ file: join(folder, "jobs.sqlite") }) });
  const queue = broker.queue("work", { leaseMs: 30_000, requestTimeoutMs: 5_000, dedupeWindowMs: 60_000 });
  await queue.open();
  // More than one step of a clear takes, so that it were to yield if it ever did.
  const old = Array.from({ length: 5_000 }, (_, n) => job(`old-${n}`));
  for (let at = 0; at < old.length; at += 500) await put(queue, ...old.slice(at, at + 500));
  const clearing = queue.clear!(["ready"]);
  await put(queue, "new-1", "new-2");
  expect(await clearing).toBe(5_000);
  expect(await queue.sizes!()).toMatchObject({ ready: 2 });
  await broker.close();
});
