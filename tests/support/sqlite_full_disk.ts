/**
 * A queue on a disk that gets full: `bun sqlite_full_disk.ts FOLDER`. The folder's file system is filled to its last byte, if it is
 * a small one. It says on standard output, in JSON, what could be done then.
 *
 * @module
 */
import { randomUUID } from "node:crypto";
import { closeSync, openSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import { bunSqlite } from "../../adapters/sqlite/bun_driver.ts";
import { SqliteBroker } from "../../adapters/sqlite/mod.ts";
import { idsOf, job } from "./conformance_steps.ts";
import { SETTINGS } from "./sqlite_scratch.ts";

const JOBS = 2000;
const SMALL_BYTES = 64 * 1024 * 1024;

async function open(folder: string) {
  const broker = new SqliteBroker({ database: bunSqlite({ file: join(folder, "jobs.db") }) });
  const queue = broker.queue("work", SETTINGS);
  await queue.open();
  const put = (prefix: string, count: number) =>
    queue.enqueue(
      randomUUID(),
      idsOf(prefix, count).map((id) => job(id)),
    );
  return { broker, queue, put };
}

/** Answers how many bytes are left; nothing of a file system that is not to be filled. */
function fill(folder: string): number | undefined {
  const { bsize, blocks } = statfsSync(folder);
  if (bsize * blocks > SMALL_BYTES) return undefined;
  const file = openSync(join(folder, "ballast"), "w");
  try {
    for (;;) writeSync(file, Buffer.alloc(4096));
  } catch (error) {
    if ((error as { code?: string }).code !== "ENOSPC") throw error;
  } finally {
    closeSync(file);
  }
  return statfsSync(folder).bavail * bsize;
}

const [folder = ""] = process.argv.slice(2);
// The database grows to its size, and what SQLite keeps beside it goes with the last connection.
const before = await open(folder);
for (let i = 0; i < 2; i += 1) await before.put(`a${i}.`, JOBS / 2);
await before.broker.close();
const { broker, queue, put } = await open(folder);
for (let i = 0; i < 10; i += 1) await put(`b${i}.`, 1);
const freeBytes = fill(folder);
const cleared = await queue.clear?.(["ready"]);
// More requests than what is beside the database has room for.
for (let i = 0; i < 100; i += 1) await put(`c${i}.`, 1);
const sizes = await queue.sizes?.();
await broker.close();
console.log(JSON.stringify({ freeBytes, cleared, ready: sizes?.ready }));
