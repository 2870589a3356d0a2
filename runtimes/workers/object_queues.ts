/**
 * The queues inside an object: answers calls from outside, and tells when work is due.
 *
 * @module
 */
import type { SqlDriver } from "../../adapters/sqlite/driver.ts";
import { durableObjectSqlite, objectDriver } from "../../adapters/sqlite/durable_object_driver.ts";
import { SqliteBroker } from "../../adapters/sqlite/mod.ts";
import { prepareSchema } from "../../adapters/sqlite/schema.ts";
import { prepareStatements, type Statements } from "../../adapters/sqlite/statements.ts";
import type {
  BrokerQueue,
  ClaimReply,
  Delivery,
  ExchangeReply,
  QueueSettings,
  RawBody,
} from "../../src/broker.ts";
import { failureOf, OBJECT_VERBS, type ObjectAnswer, type ObjectCall } from "./object_protocol.ts";
import type { AlarmStorage } from "./types.ts";

/** The most bytes of bodies in one answer, well below what a call may carry. What is beyond goes back at once. */
const MOST_ANSWER_BYTES = 8_000_000;
/** Handles kept open, one for each queue and way of opening it. */
const MOST_HANDLES = 100;

const VERBS: ReadonlySet<string> = new Set(OBJECT_VERBS);

export class ObjectQueues {
  readonly broker: SqliteBroker;
  readonly #driver: SqlDriver;
  #sql: Statements | undefined;
  readonly #wallNow: () => number;
  readonly #handles = new Map<string, Promise<BrokerQueue>>();

  constructor(storage: AlarmStorage, wallNow: () => number) {
    this.#wallNow = wallNow;
    this.broker = new SqliteBroker({ database: durableObjectSqlite(storage), wallNow });
    this.#driver = objectDriver(storage);
  }

  /** Carries out a call from outside. Never rejects. */
  async answer(call: ObjectCall): Promise<ObjectAnswer> {
    const { verb } = call;
    try {
      if (!VERBS.has(verb)) throw new RangeError("Cannot ask the queue's object: the verb is unknown");
      const queue = await this.#open(call.queue, call.settings);
      const value = await (queue[verb] as (...args: unknown[]) => Promise<unknown>).apply(queue, [
        ...call.args,
      ]);
      if (verb === "open") return { ok: true, value: queue.memo };
      if (verb === "claim") return { ok: true, value: await cut(queue, value as ClaimReply) };
      if (verb === "exchange") {
        const reply = value as ExchangeReply;
        const claimed = reply.claimed && (await cut(queue, reply.claimed));
        return { ok: true, value: { ...reply, claimed } };
      }
      return { ok: true, value };
    } catch (error) {
      return { ok: false, error: failureOf(error, verb) };
    }
  }

  /**
   * In how many milliseconds a claim would bring something, for each of the named queues that have jobs waiting or held. 0 for by now; paused
   * queues are left out.
   */
  dueMs(names: readonly string[]): Map<string, number> {
    const sql = this.#statements();
    const now = this.#wallNow();
    const due = new Map<string, number>();
    for (const name of names) {
      const at = dueAt(sql, name);
      if (at !== undefined) due.set(name, Math.max(0, at - now));
    }
    return due;
  }

  /** The tables are there before they are read, also in an object that nobody has used yet. */
  #statements(): Statements {
    if (this.#sql === undefined) {
      prepareSchema(this.#driver);
      this.#sql = prepareStatements(this.#driver);
    }
    return this.#sql;
  }

  #open(name: string, settings: QueueSettings): Promise<BrokerQueue> {
    const key = `${name} ${settings.leaseMs} ${settings.dedupeWindowMs}`;
    const known = this.#handles.get(key);
    if (known !== undefined) return known;
    const opening = this.#opened(name, settings);
    if (this.#handles.size >= MOST_HANDLES) this.#handles.clear();
    this.#handles.set(key, opening);
    opening.catch(() => this.#handles.delete(key));
    return opening;
  }

  async #opened(name: string, settings: QueueSettings): Promise<BrokerQueue> {
    const queue = this.broker.queue(name, settings);
    await queue.open();
    return queue;
  }
}

function dueAt(sql: Statements, name: string): number | undefined {
  const n = sql.queueNumber.get(name)?.n;
  if (typeof n !== "number" || sql.queueState.get(n)?.paused === 1) return undefined;
  if (sql.anyReady.get(n) !== undefined) return 0;
  const times = [sql.nextDue.get(n)?.due_at, sql.nextEnd.get(n)?.until].filter(
    (time) => typeof time === "number",
  );
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Gives back what would make the answer too large. Nothing comes in between, so nobody sees it held. */
async function cut(queue: BrokerQueue, reply: ClaimReply): Promise<ClaimReply> {
  const { deliveries } = reply;
  let bytes = 0;
  const most = deliveries.findIndex((delivery, at) => {
    bytes += sizeOf(delivery.body);
    return at > 0 && bytes > MOST_ANSWER_BYTES;
  });
  if (most < 0) return reply;
  const released: readonly Delivery[] = deliveries.slice(most);
  await queue.settle(released.map((delivery) => ({ delivery, verdict: { kind: "release" } })));
  return { ...reply, deliveries: deliveries.slice(0, most), nextDueMs: 0 };
}

function sizeOf(body: RawBody): number {
  return typeof body === "string" ? body.length : body.byteLength;
}
