/**
 * Enqueues one job into the SQLite file of its argument and says what became of it.
 *
 * @module
 */
import { SqliteBroker } from "../../../../adapters/sqlite/mod.ts";
import { nodeSqlite } from "../../../../adapters/sqlite/node_driver.ts";
import { put } from "../../../support/conformance_steps.ts";

const broker = new SqliteBroker({ database: nodeSqlite({ file: Deno.args[0] ?? "" }) });
const queue = broker.queue("work", { leaseMs: 30_000, requestTimeoutMs: 5000, dedupeWindowMs: 60_000 });
await queue.open();
await put(queue, "a");
console.log(JSON.stringify(await queue.sizes?.()));
await broker.close();
