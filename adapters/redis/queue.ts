import type {
  BrokerLimits,
  BrokerQueue,
  ClaimReply,
  ClaimRequest,
  Delivery,
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
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import { checkClaim, checkEnqueue, checkMemo } from "../checks.ts";
import { looseLimits } from "../offers.ts";
import { RedisClient } from "./client.ts";
import { refusedRights, strange } from "./failure.ts";
import { baseline, lossAtRestart, objection, readSigns, type Signs, VANISHED } from "./guard.ts";
import type { ResolvedRedisOptions } from "./options.ts";
import { splitIntoParts } from "./parts.ts";
import { readPeeked } from "./peeked.ts";
import { readRecord } from "./record.ts";
import { SETTLED } from "./scripts/common.ts";
import { ENQUEUE, STAGE } from "./scripts/enqueue.ts";
import { EXCHANGE } from "./scripts/exchange.ts";
import { ABANDON, CLEAR, OPEN, PAUSE, PEEK, REDRIVE, SIZES } from "./scripts/manage.ts";
import { planSettlements, tokensOf } from "./settlements.ts";
import { PING, subscribe } from "./watch.ts";

/** What a queue needs of its connection. */
export interface Connection {
  readonly isClosed: boolean;
  readonly options: ResolvedRedisOptions;
  countRequest(): void;
  /** Tells a warning, each text once. */
  warn(text: string): void;
  /** Has a watch ended with the connection, at the latest; answers what ends it earlier. */
  keep(end: () => void): () => void;
}

/** At most so many jobs one script call moves, so that none holds the server up for long. */
const REDRIVE_AT_ONCE = 1000;
/** As good as no limit, and a number that Redis can read. */
const MOST_PEEKED = 1_000_000_000;
/** How long a part of a large enqueue waits for the rest, in milliseconds. */
const KEEP_PART_MS = 600_000;

/** One queue over one connection. */
export class RedisQueue implements BrokerQueue {
  readonly name: string;
  readonly limits: BrokerLimits;
  readonly #settings: QueueSettings;
  readonly #connection: Connection;
  readonly #client: RedisClient;
  readonly #keys: readonly string[];
  readonly #channel: string;
  /** The generation this handle saw; `''` before it saw any. A queue whose keys were lost begins another. */
  #generation = "";
  #memo: string | undefined;
  #isOpen = false;
  /** Set once the guard objected: the handle serves nothing any more. */
  #refused: BrokerRefusedError | undefined;
  #evictedBefore = 0;
  #verifiedAt = 0;

  constructor(name: string, settings: QueueSettings, connection: Connection) {
    const { options } = connection;
    this.name = name;
    this.limits = looseLimits(settings.leaseMs, options.maxBodyBytes);
    this.#settings = settings;
    this.#connection = connection;
    this.#client = new RedisClient({
      url: options.url,
      token: options.token,
      timeoutMs: settings.requestTimeoutMs,
      onRequest: () => connection.countRequest(),
    });
    // One hash tag: a cluster keeps all keys of a queue together.
    const base = `${options.prefix}:{${name}}:`;
    this.#keys = [`${base}queue`];
    this.#channel = `${base}wake`;
  }

  get memo(): string | undefined {
    return this.#memo;
  }

  async open(): Promise<void> {
    this.#check("open");
    const reply = await this.#run("open", OPEN, [crypto.randomUUID()]);
    const [, generation, stats, memory, memo, persistence, denied] = reply;
    if (typeof generation !== "string") throw strange("open", this.#client.origin);
    if (typeof denied === "string" && denied !== "") throw refusedRights("open", this.#client.origin, denied);
    let signs = readSigns(String(stats), String(memory));
    if (signs.policy === undefined) signs = { ...signs, policy: await this.#askPolicy() };
    if (!this.#isOpen) this.#evictedBefore = signs.evicted ?? 0;
    this.#judge("open", signs);
    const loss = lossAtRestart(String(persistence));
    if (loss !== undefined) this.#connection.warn(`Redis at ${this.#client.origin} ${loss}`);
    this.#generation = generation;
    this.#memo = typeof memo === "string" && memo !== "" ? memo : undefined;
    this.#verifiedAt = performance.now();
    this.#isOpen = true;
  }

  async enqueue(requestId: string, jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    checkEnqueue(requestId, jobs, this.limits);
    this.#check("enqueue");
    if (jobs.length === 0) return [];
    const parts = splitIntoParts(jobs, this.#connection.options.maxRequestBytes);
    for (let at = 0; at < parts.length - 1; at++) {
      const part = parts[at] as string[];
      await this.#run("enqueue", STAGE, [requestId, String(at + 1), String(KEEP_PART_MS), ...part]);
    }
    const reply = await this.#run("enqueue", ENQUEUE, [
      crypto.randomUUID(),
      requestId,
      String(this.#settings.dedupeWindowMs),
      String(parts.length - 1),
      ...(parts[parts.length - 1] as string[]),
    ]);
    const [, generation, digits] = reply;
    if (typeof generation !== "string" || typeof digits !== "string") {
      throw strange("enqueue", this.#client.origin);
    }
    this.#generation = generation;
    return jobs.map((job, at) => ({ id: job.id, duplicate: digits[at] === "1" }));
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    const reply = await this.#exchange("claim", { settle: [], renew: [], claim: request });
    return reply.claimed as ClaimReply;
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    return (await this.#exchange("settle", { settle: settlements, renew: [] })).settled;
  }

  async renew(leaseIds: readonly string[]): Promise<readonly RenewResult[]> {
    return (await this.#exchange("renew", { settle: [], renew: leaseIds })).renewed;
  }

  exchange(request: ExchangeRequest): Promise<ExchangeReply> {
    return this.#exchange("exchange", request);
  }

  async abandon(leaseIds: readonly string[]): Promise<void> {
    this.#check("abandon", true);
    if (leaseIds.length > 0) await this.#run("abandon", ABANDON, [...leaseIds]);
  }

  async watch(onWake: () => void, onEnd: (error: Error) => void): Promise<Watch> {
    this.#check("watch", true);
    const { url, token, watchSilenceMs } = this.#connection.options;
    const close = await subscribe({
      url,
      token,
      channel: this.#channel,
      timeoutMs: this.#settings.requestTimeoutMs,
      silenceMs: watchSilenceMs,
      onRequest: () => this.#connection.countRequest(),
      onWake,
      onEnd,
      ping: () => this.#client.command("watch", ["PUBLISH", this.#channel, PING]),
    });
    if (this.#connection.isClosed) {
      close();
      this.#check("watch");
    }
    const end = this.#connection.keep(close);
    return { close: async () => end() };
  }

  async sizes(): Promise<QueueSizes> {
    this.#check("sizes", true);
    const [, ready, delayed, held, dead, paused] = await this.#run("sizes", SIZES, []);
    return {
      ready: Number(ready),
      delayed: Number(delayed),
      held: Number(held),
      dead: Number(dead),
      paused: paused === 1,
    };
  }

  async peek(state: JobState, limit: number, withBodies = true): Promise<readonly PeekedJob[]> {
    this.#check("peek", true);
    const most = Math.min(Math.floor(limit), MOST_PEEKED);
    const bytes = String(this.#connection.options.maxReplyBytes);
    const found: string[] = [];
    const shown = () => (state === "delayed" ? found.length / 2 : found.length);
    // As many requests as it takes, for all of it could be more than one can bring.
    for (let [passed, more] = [0, limit >= 1]; more; ) {
      const args = [state, String(most - shown()), String(passed), bytes, withBodies ? "1" : "0"];
      const [, some, looked, rest] = await this.#run("peek", PEEK, args);
      if (!Array.isArray(some)) throw strange("peek", this.#client.origin);
      for (const text of some) found.push(String(text));
      passed += Number(looked);
      more = rest === 1 && Number(looked) > 0 && shown() < most;
    }
    return readPeeked(state, found);
  }

  async clear(states: readonly ("ready" | "delayed" | "dead")[]): Promise<number> {
    this.#check("clear", true);
    const [, removed] = await this.#run("clear", CLEAR, [...states]);
    return Number(removed);
  }

  async redrive(options: { readonly ids?: readonly string[]; readonly limit: number }): Promise<number> {
    this.#check("redrive", true);
    const { ids, limit } = options;
    let moved = 0;
    for (let first = 0; ; ) {
      const some = ids?.slice(first, first + REDRIVE_AT_ONCE) ?? [];
      const most = Math.min(limit - moved, REDRIVE_AT_ONCE);
      if (!(most >= 1) || (ids !== undefined && some.length === 0)) return moved;
      const [, count, more] = await this.#run("redrive", REDRIVE, [String(Math.floor(most)), ...some]);
      moved += Number(count);
      if (more === 1) continue;
      if (ids === undefined && Number(count) < most) return moved;
      first += REDRIVE_AT_ONCE;
    }
  }

  async pause(): Promise<void> {
    this.#check("pause", true);
    await this.#run("pause", PAUSE, ["1"]);
  }

  async resume(): Promise<void> {
    this.#check("resume", true);
    await this.#run("resume", PAUSE, ["0"]);
  }

  async #exchange(verb: string, request: ExchangeRequest): Promise<ExchangeReply> {
    const { claim, renew, settle, remember } = request;
    if (claim !== undefined) checkClaim(claim, this.limits);
    if (remember !== undefined) checkMemo(remember);
    this.#check(verb, true);
    if (claim === undefined && remember === undefined && settle.length + renew.length === 0) {
      return { settled: [], renewed: [] };
    }
    const plan = planSettlements(settle);
    const verify = performance.now() - this.#verifiedAt >= this.#connection.options.verifyEveryMs;
    const reply = await this.#run(verb, EXCHANGE, [
      String(this.limits.leaseMs),
      remember === undefined ? "" : `=${remember}`,
      ...plan.args,
      String(renew.length),
      ...renew,
      claim?.recall === true ? "1" : "0",
      claim !== undefined && verify ? "1" : "0",
      String(claim?.max ?? 0),
      claim?.leaseId ?? "",
      String(this.#connection.options.maxReplyBytes),
      String(largestRecord(this.#connection.options)),
    ]);
    const [, letters, renewals, memo, stats, memory, nextDue, records] = reply;
    const settled = plan.results(letters);
    if (
      settled === undefined ||
      typeof renewals !== "string" ||
      renewals.length !== renew.length ||
      !Array.isArray(records)
    ) {
      throw strange(verb, this.#client.origin);
    }
    if (claim !== undefined && verify)
      await this.#verify(verb, readSigns(String(stats), String(memory)), claim);
    return {
      settled,
      renewed: renew.map((_id, at) => (renewals[at] === "h" ? "held" : "lost")),
      claimed: claim && {
        deliveries: deliveriesOf(claim.leaseId, records),
        nextDueMs: Number(nextDue) < 0 ? undefined : Number(nextDue),
        memo: typeof memo === "string" && memo !== "" ? memo.slice(1) : undefined,
      },
    };
  }

  /** @throws {BrokerError} when the connection is closed, the guard has objected, or the queue is not open and should be. */
  #check(verb: string, mustBeOpen = false): void {
    if (this.#connection.isClosed) {
      throw new BrokerError("redis", verb, `Cannot ${verb}: the broker is closed; open a new one`);
    }
    if (this.#refused !== undefined) throw this.#refused;
    if (mustBeOpen && !this.#isOpen) {
      throw new BrokerError(
        "redis",
        verb,
        `Cannot ${verb}: the queue ${this.name} is not open; call open() first`,
      );
    }
  }

  async #run(verb: string, script: string, args: string[]): Promise<unknown[]> {
    const reply = await this.#client.run(verb, script, this.#keys, [this.#generation, ...args]);
    if (!Array.isArray(reply)) throw strange(verb, this.#client.origin);
    if (reply[0] === "ok") return reply;
    if (reply[0] === "vanished") return this.#refuse(verb, VANISHED);
    if (reply[0] === "incomplete") {
      throw new BrokerError("redis", verb, `Cannot ${verb}: a part of a large request was lost on its way`);
    }
    throw strange(verb, this.#client.origin);
  }

  /** @throws {BrokerRefusedError} now, and from now on. */
  #refuse(verb: string, why: string): never {
    this.#refused ??= new BrokerRefusedError("redis", verb, `Cannot serve the queue ${this.name}: ${why}`);
    throw this.#refused;
  }

  #judge(verb: string, signs: Signs): void {
    if (this.#connection.options.onEvictions === "ignore") return;
    const why = objection(signs, this.#evictedBefore);
    if (why !== undefined) this.#refuse(verb, why);
    const unread = [
      signs.policy === undefined ? "maxmemory-policy" : undefined,
      signs.evicted === undefined ? "evicted_keys" : undefined,
    ].filter((one) => one !== undefined);
    if (unread.length === 0) return;
    this.#connection.warn(
      `Eddy cannot read ${unread.join(" and ")} of Redis at ${this.#client.origin}: ` +
        "make sure yourself that it never evicts keys (maxmemory-policy noeviction; on Upstash, eviction switched off)",
    );
  }

  /** Judges what came with a claim. When it objects, what was claimed is given back first: nobody will run it here. */
  async #verify(verb: string, signs: Signs, claim: ClaimRequest): Promise<void> {
    this.#verifiedAt = performance.now();
    try {
      this.#judge(verb, signs);
    } catch (objected) {
      // If it does not get through, the lease runs out instead.
      await this.#run("abandon", ABANDON, [claim.leaseId]).catch(() => {});
      throw objected;
    }
    this.#evictedBefore = baseline(this.#evictedBefore, signs);
  }

  /** Where a script may not read INFO, the commands may: each is refused to some. */
  async #askPolicy(): Promise<string | undefined> {
    try {
      const answer = await this.#client.command("open", ["CONFIG", "GET", "maxmemory-policy"]);
      if (Array.isArray(answer) && typeof answer[1] === "string") return answer[1];
    } catch {
      // Refused here as well. The guard says so.
    }
    return undefined;
  }
}

/** As large as a record can be that came in by a request; in base64 a body takes a third more than it has. */
function largestRecord({ maxBodyBytes, maxRequestBytes, maxReplyBytes }: ResolvedRedisOptions): number {
  return Math.max(maxRequestBytes, maxReplyBytes, 2 * maxBodyBytes);
}

function deliveriesOf(leaseId: string, records: readonly unknown[]): Delivery[] {
  const deliveries: Delivery[] = [];
  const tokens = tokensOf(records.length);
  for (let at = 0; at < records.length; at++) {
    const text = records[at];
    if (typeof text !== "string" || text === SETTLED) continue;
    const { id, attempts, suspect, enqueuedAt, headers, body, priority, broken } = readRecord(text);
    const delivery: Delivery = {
      id: id === "" ? `malformed:${at + 1}:${leaseId}`.slice(0, 200) : id,
      leaseId,
      token: tokens[at] as string,
      attempt: attempts + 1,
      suspect,
      enqueuedAt,
      headers,
      body,
      priority,
    };
    deliveries.push(broken === undefined ? delivery : { ...delivery, broken });
  }
  return deliveries;
}
