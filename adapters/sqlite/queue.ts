import type {
  BrokerLimits,
  BrokerQueue,
  ClaimReply,
  ClaimRequest,
  Enqueued,
  ExchangeReply,
  ExchangeRequest,
  JobState,
  NewJob,
  PeekedJob,
  QueueSettings,
  QueueSizes,
  RenewResult,
  Settlement,
  SettleResult,
  Watch,
} from "../../src/broker.ts";
import { BrokerError } from "../../src/errors.ts";
import { checkClaim, checkEnqueue, checkMemo, checkQueue } from "../checks.ts";
import { looseLimits } from "../offers.ts";
import { claimJobs } from "./claim.ts";
import { wholeMs } from "./clock.ts";
import type { Connection } from "./connection.ts";
import { enqueueJobs } from "./enqueue.ts";
import { peekJobs, sizesOf } from "./inspect.ts";
import { abandonLease, extendLease } from "./leases.ts";
import { settleAll } from "./settle.ts";
import { Slices } from "./slices.ts";
import type { Statements, Tables } from "./statements.ts";
import { belowLast, clearSlice, drawLine, redriveSlice } from "./tend.ts";
import type { Watchers } from "./watcher.ts";

/** The largest body, where the driver allows as much. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** One queue of a database. Each verb is one transaction, an exchange included. */
export class SqliteQueue implements BrokerQueue {
  readonly name: string;
  #limits: BrokerLimits;
  readonly #connection: Connection;
  readonly #watchers: Watchers;
  readonly #wallNow: () => number;
  readonly #windowMs: number;
  #number: number | undefined;
  #memo: string | undefined;
  constructor(
    name: string,
    settings: QueueSettings,
    connection: Connection,
    watchers: Watchers,
    wallNow: () => number,
  ) {
    checkQueue(name, settings);
    this.name = name;
    this.#limits = looseLimits(settings.leaseMs, MAX_BODY_BYTES);
    this.#connection = connection;
    this.#watchers = watchers;
    this.#wallNow = wallNow;
    this.#windowMs = settings.dedupeWindowMs;
  }

  get memo(): string | undefined {
    return this.#memo;
  }

  get limits(): BrokerLimits {
    return this.#limits;
  }

  async open(): Promise<void> {
    await this.#connection.open();
    this.#number = await this.#connection.write("open", (sql) => {
      sql.addQueue.run(this.name);
      const number = Number(sql.queueNumber.get(this.name)?.n);
      const memo = sql.queueState.get(number)?.memo;
      this.#memo = typeof memo === "string" ? memo : undefined;
      return number;
    });
    const maxBodyBytes = Math.min(MAX_BODY_BYTES, this.#connection.maxValueBytes);
    this.#limits = Object.freeze({ ...this.#limits, maxBodyBytes });
  }

  async enqueue(requestId: string, jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    checkEnqueue(requestId, jobs, this.#limits);
    const { answers, isNews } = await this.#write("enqueue", (tables, now) =>
      enqueueJobs(tables, requestId, jobs, now, this.#windowMs),
    );
    if (isNews) this.#announce();
    return answers;
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    checkClaim(request, this.#limits);
    return this.#write("claim", (tables, now) => this.#claim(tables, request, now));
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    if (settlements.length === 0) return [];
    const { results, madeReady } = await this.#write("settle", (tables, now) =>
      settleAll(tables, settlements, now),
    );
    if (madeReady) this.#announce();
    return results;
  }

  async renew(leaseIds: readonly string[]): Promise<readonly RenewResult[]> {
    if (leaseIds.length === 0) return [];
    return this.#write("renew", (tables, now) => this.#renew(tables, leaseIds, now));
  }

  async exchange(request: ExchangeRequest): Promise<ExchangeReply> {
    if (request.claim !== undefined) checkClaim(request.claim, this.#limits);
    if (request.remember !== undefined) checkMemo(request.remember);
    const { settled, renewed, claimed } = await this.#write("exchange", (tables, now) => {
      const settled = settleAll(tables, request.settle, now);
      const renewed = this.#renew(tables, request.renew, now);
      if (request.remember !== undefined) tables.sql.setMemo.run(request.remember, tables.queue);
      return { settled, renewed, claimed: request.claim && this.#claim(tables, request.claim, now) };
    });
    if (settled.madeReady) this.#announce();
    return { settled: settled.results, renewed, claimed };
  }

  async abandon(leaseIds: readonly string[]): Promise<void> {
    if (leaseIds.length === 0) return;
    await this.#write("abandon", (tables, now) => {
      for (const leaseId of leaseIds) abandonLease(tables, leaseId, now);
    });
    this.#announce();
  }

  async watch(onWake: () => void, onEnd: (error: Error) => void): Promise<Watch> {
    return this.#watchers.add(this.#opened("watch"), onWake, onEnd);
  }

  async sizes(): Promise<QueueSizes> {
    return this.#read("sizes", (tables, now) => sizesOf(tables, now));
  }

  async peek(state: JobState, limit: number, withBodies = true): Promise<readonly PeekedJob[]> {
    // One transaction, so that no job is seen in two places or in none.
    return this.#write("peek", (tables, now) => peekJobs(tables, state, limit, withBodies, now));
  }

  async clear(states: readonly ("ready" | "delayed" | "dead")[]): Promise<number> {
    const chosen = new Set(states);
    const slices = this.#slices("clear");
    // The first slice goes before the line is drawn: where the database may not grow, it makes the room for it.
    const first = await slices.next(Infinity, (tables, now, rows) => {
      const cleared = clearSlice(tables, chosen, belowLast(tables), now, rows);
      return { cleared, line: drawLine(tables), startedAt: now };
    });
    const rest = await slices.all(Infinity, (tables, rows) =>
      clearSlice(tables, chosen, first.line, first.startedAt, rows),
    );
    return first.cleared + rest;
  }

  async redrive(options: { readonly ids?: readonly string[]; readonly limit: number }): Promise<number> {
    const slices = this.#slices("redrive");
    const line = await slices.next(Infinity, drawLine);
    return slices.all(options.limit, (tables, rows) => {
      const redriven = redriveSlice(tables, options.ids, line, rows);
      if (redriven > 0) this.#announce();
      return redriven;
    });
  }

  async pause(): Promise<void> {
    await this.#write("pause", ({ sql, queue }) => sql.setPaused.run(1, queue));
  }

  async resume(): Promise<void> {
    await this.#write("resume", ({ sql, queue }) => sql.setPaused.run(0, queue));
    this.#announce();
  }

  #claim(tables: Tables, request: ClaimRequest, now: number): ClaimReply {
    const key = `${this.name} ${request.leaseId}`;
    const isSpent = this.#connection.spentClaims.get(key, now) === true;
    const reply = claimJobs(tables, request, now, this.#limits.leaseMs, isSpent);
    if (reply.deliveries.length === 0) this.#connection.spentClaims.set(key, true, now);
    return reply;
  }

  #renew(tables: Tables, leaseIds: readonly string[], now: number): RenewResult[] {
    return leaseIds.map((leaseId) => extendLease(tables, leaseId, now + this.#limits.leaseMs));
  }

  #slices(verb: string): Slices {
    return new Slices(
      (fn) => this.#write(verb, fn),
      (error) => this.#connection.isFull(error),
    );
  }

  async #write<T>(verb: string, fn: (tables: Tables, now: number) => T): Promise<T> {
    const queue = this.#opened(verb);
    return this.#connection.write(verb, (sql: Statements) => fn({ sql, queue }, this.#now()));
  }

  async #read<T>(verb: string, fn: (tables: Tables, now: number) => T): Promise<T> {
    const queue = this.#opened(verb);
    const connection = this.#connection;
    return connection.reading(() => connection.read(verb, (sql) => fn({ sql, queue }, this.#now())));
  }

  #now(): number {
    return wholeMs(this.#wallNow());
  }

  #announce(): void {
    if (this.#number !== undefined) this.#watchers.announce(this.#number);
  }

  #opened(verb: string): number {
    if (this.#connection.isClosed) {
      throw new BrokerError("sqlite", verb, `Cannot ${verb}: the broker is closed; open a new one`);
    }
    if (this.#number === undefined) {
      throw new BrokerError("sqlite", verb, `Cannot ${verb}: the queue is not open; call open() first`);
    }
    return this.#number;
  }
}
