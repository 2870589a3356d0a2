/**
 * A process of its own at work on a SQLite file: `bun sqlite_child.ts ROLE FILE …`. It says on standard output what it has
 * done, a line each, after it is done. The tests start several and kill some.
 *
 * - `produce FILE PREFIX COUNT`: enqueues one job at a time, says each id.
 * - `consume FILE`: claims, settles and claims again without end, says the id of each job it acked.
 * - `stall FILE`: puts 3,000 jobs into one transaction, says `stalled`, and never commits.
 *
 * @module
 */

import { randomUUID } from "node:crypto";
import { writeSync } from "node:fs";
import { bunSqlite } from "../../adapters/sqlite/bun_driver.ts";
import { SqliteBroker } from "../../adapters/sqlite/mod.ts";
import type { Delivery } from "../../src/broker.ts";
import { job } from "./conformance_steps.ts";
import { SETTINGS } from "./sqlite_scratch.ts";

function say(lines: readonly string[]): void {
  // Synchronous: what was said is out, even when this process is killed at once.
  if (lines.length > 0) writeSync(1, lines.map((line) => `${line}\n`).join(""));
}

async function openQueue(file: string) {
  const broker = new SqliteBroker({ database: bunSqlite({ file, busyTimeoutMs: 20_000 }) });
  const queue = broker.queue("work", SETTINGS);
  await queue.open();
  return { broker, queue };
}

async function produce(file: string, prefix: string, count: number): Promise<void> {
  const { broker, queue } = await openQueue(file);
  for (let i = 1; i <= count; i += 1) {
    const id = `${prefix}${i}`;
    await queue.enqueue(randomUUID(), [job(id)]);
    say([id]);
  }
  await broker.close();
}

async function consume(file: string): Promise<void> {
  const { queue } = await openQueue(file);
  say(["ready"]);
  let held: readonly Delivery[] = [];
  for (;;) {
    const reply = await queue.exchange!({
      settle: held.map((delivery) => ({ delivery, verdict: { kind: "ack" } })),
      renew: [],
      claim: { leaseId: randomUUID(), max: 7, waitMs: 0 },
    });
    say(held.filter((_, i) => reply.settled[i] === "done").map((delivery) => delivery.id));
    held = reply.claimed?.deliveries ?? [];
    if (held.length === 0) await new Promise((resolve) => setTimeout(resolve, 3));
  }
}

async function stall(file: string): Promise<void> {
  const driver = await bunSqlite({ file }).open();
  // A small cache, so that pages of the open transaction are written out before it ends.
  driver.exec("PRAGMA cache_size = 10");
  driver.transaction(() => {
    const add = driver.prepare(
      "INSERT INTO eddy_jobs (queue, id, body) VALUES ((SELECT n FROM eddy_queues WHERE name = 'work'), ?, ?)",
    );
    for (let i = 0; i < 3000; i += 1) add.run(`never-${i}`, "x".repeat(500));
    driver.prepare("DELETE FROM eddy_jobs WHERE id LIKE 'kept-%'").run();
    say(["stalled"]);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
}

const [role, file = "", prefix = "", count = "0"] = process.argv.slice(2);
if (role === "produce") await produce(file, prefix, Number(count));
else if (role === "consume") await consume(file);
else if (role === "stall") await stall(file);
else throw new Error(`There is no role ${role}`);
