/**
 * The Broker port: what Eddy asks of a queue engine.
 *
 * An adapter implements {@linkcode Broker} (one connection to an engine) and {@linkcode BrokerQueue} (one
 * queue of it). The contract is written here, verb by verb; `tests/conformance/` holds every adapter to it.
 *
 * Four rules hold for every verb:
 *
 * 1. **Sent twice counts once.** Any verb may be sent again with the same arguments after its reply was lost.
 * 2. **Every request ends.** An adapter gives up on a request after `requestTimeoutMs` and rejects; it never retries by
 *    itself: the loop does, with jitter.
 * 3. **Errors carry no payload.** A rejection is a `BrokerError` whose text holds no body, token or URL credential.
 * 4. **The broker's clock decides** leases, delays and due times. A worker's clock is never sent to it.
 *
 * @module
 */

/**
 * A job's body as the engine keeps it. A string stands for its UTF-8 bytes; an adapter may answer a string for
 * what was enqueued as bytes and the other way round, so long as the bytes are the same.
 */
export type RawBody = string | Uint8Array;

/**
 * Which jobs go first: high, then normal, then low; within one level the oldest. But no level starves: one that has jobs
 * waiting is passed over by at most seven deliveries of higher levels in a row, counted over claims, before it gives
 * one (low by eight, where normal's turn came first). Within one claim's reply high ones stand first all the same.
 */
export type Priority = "high" | "normal" | "low";

/**
 * What an adapter can do beyond claim, settle, renew and enqueue.
 *
 * - `exchange`: settle, renew and claim in one round trip.
 * - `waits`: the engine itself holds a claim open for up to `waitMs`.
 * - `abandon`: a lease can be given back by its id alone.
 * - `fenced`: the engine itself keeps the leases. So every connection knows each by its id; one whose deadline passed is held still until a claim takes
 *   its jobs back; and a claim tells when the next one ends. Without it only the connection that claimed knows a lease, which is over when its deadline has
 *   passed there, and a verdict sent just before may take effect just after.
 * - `atomic`: an enqueue's jobs are taken in all or none, and stay together. Without it a request can be taken in by half; sent again it adds the rest.
 * - `delay`, `priority`, `dedupe`: these fields of {@linkcode NewJob} work.
 * - `wake`: {@linkcode BrokerQueue.watch} tells of new work.
 * - `sizes`, `peek`, `clear`, `redrive`, `pause`: the methods of that name.
 * - `memo`: a small text can be kept with the queue and comes back with a claim.
 */
export type Capability =
  | "exchange"
  | "waits"
  | "abandon"
  | "fenced"
  | "atomic"
  | "delay"
  | "priority"
  | "dedupe"
  | "wake"
  | "sizes"
  | "peek"
  | "clear"
  | "redrive"
  | "pause"
  | "memo";

/** Hard limits of an engine. The loop never asks for more; a definition that would is refused at start. */
export interface BrokerLimits {
  /** The most deliveries one claim may ask for. */
  readonly maxBatch: number;
  /** The most jobs one enqueue may carry. */
  readonly maxEnqueue: number;
  /** The most deliveries that may be held at once, over all workers of the queue. `Infinity` where there is no limit. */
  readonly maxInFlight: number;
  /** The largest body in bytes. */
  readonly maxBodyBytes: number;
  /** The lease in milliseconds that claims are really given; `settings.leaseMs` unless the engine fixes it. */
  readonly leaseMs: number;
  /** Whether leases can be renewed. Without it a claim may only ask for one job. */
  readonly renewable: boolean;
  /** Whether the queue delivers strictly one job at a time, in order. Then concurrency must be 1. */
  readonly exclusive: boolean;
}

/** How one queue is to be opened. */
export interface QueueSettings {
  /** How long a claim holds its deliveries, in milliseconds. */
  readonly leaseMs: number;
  /** How long one request may take before it is given up, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** How long an id chosen by the caller keeps a second job of that id out, in milliseconds. */
  readonly dedupeWindowMs: number;
  /**
   * Whether {@linkcode BrokerQueue.open} makes what is missing; true by default. False is for whoever only looks: where the engine would keep a queue for
   * ever once it was opened, nothing is made or changed. Where next to nothing is left by an opening it makes no difference.
   */
  readonly create?: boolean;
}

/** One connection to an engine. Making one does no I/O. */
export interface Broker {
  /** Names the adapter: `"memory"`, `"sqlite"`, `"redis"`. */
  readonly name: string;
  readonly capabilities: ReadonlySet<Capability>;
  /**
   * Platform requests (HTTP) made so far. A drain's budget of requests counts by it; `0` for ever where the engine
   * needs none.
   */
  readonly requests: number;
  /**
   * A queue of this engine. Does no I/O; call {@linkcode BrokerQueue.open} before the first claim.
   *
   * @throws {RangeError} when the name or a setting cannot be served.
   */
  queue(name: string, settings: QueueSettings): BrokerQueue;
  /** Closes the connection and every watch. May be called twice. Held leases are left to run out. */
  close(): Promise<void>;
}

/** A job to be enqueued. Already validated by the caller against {@linkcode isJobId} and the limits. */
export interface NewJob {
  /** The job's id. See {@linkcode NewJob.dedupe}. */
  readonly id: string;
  readonly body: RawBody;
  /** Lower-case names, printable values. */
  readonly headers: Readonly<Record<string, string>>;
  readonly priority: Priority;
  /** Milliseconds from its arrival at the broker until it may be claimed; 0 for at once. */
  readonly delayMs: number;
  /** Whether a job of the same id, enqueued within `dedupeWindowMs`, keeps this one out. */
  readonly dedupe: boolean;
}

/** What became of one job of an enqueue. */
export interface Enqueued {
  readonly id: string;
  /** True when a job of that id was there already, so this one was not added. */
  readonly duplicate: boolean;
}

/** One hand-out of a job to one worker. */
export interface Delivery {
  /** The job's id. */
  readonly id: string;
  /** The lease it is held under. */
  readonly leaseId: string;
  /** Names the delivery within its lease; meaningful to the adapter alone. */
  readonly token: string;
  /** 1 for the first. Counts each delivery that was not released. */
  readonly attempt: number;
  /** True when an earlier holder of this job vanished: its lease ran out. Kept by a release, cleared by a retry. */
  readonly suspect: boolean;
  /** When the broker took the job in, Unix milliseconds of the broker's clock. */
  readonly enqueuedAt: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: RawBody;
  readonly priority: Priority;
  /** Why the stored job could not be read. Such a delivery has what could be saved as its body and must be dead-lettered. */
  readonly broken?: string;
}

export interface ClaimRequest {
  /**
   * The lease's id, chosen by the caller, never used before (see {@linkcode isJobId} for its alphabet).
   *
   * Sent again while the lease is held, the claim answers with the same deliveries and renews the lease. Sent again
   * when the lease is over (all settled, abandoned, run out and handed to others, or there was nothing to claim), it
   * answers with none: a late copy of a claim strands nothing. An adapter remembers lease ids for at least 60 seconds after their end.
   */
  readonly leaseId: string;
  /** The most deliveries wanted, at least 1 and at most `maxBatch`. */
  readonly max: number;
  /**
   * How long the engine may wait for a *first* delivery, in milliseconds. What is there after it comes along at once;
   * nothing waits for a batch to fill. Only brokers with `waits` heed it, others answer at once.
   */
  readonly waitMs: number;
  /** Ends the wait: the claim answers at once with what it has. Never throws deliveries away. */
  readonly signal?: AbortSignal;
  /** Whether the reply should carry the queue's memo (`memo`). */
  readonly recall?: boolean;
}

export interface ClaimReply {
  /** Oldest first, high priority first. Fewer than asked means that no more were there. */
  readonly deliveries: readonly Delivery[];
  /**
   * In how many milliseconds something held or delayed becomes claimable without anyone enqueuing: the next delayed job's
   * due time or the next lease's end, whichever is first. 0 when some is there by now; `undefined` when nothing is in sight, the queue is
   * paused, or the engine cannot tell. Only needed of claims that came back short; of a late copy that takes nothing, too: whoever sent it may have no
   * other answer to sleep by.
   */
  readonly nextDueMs?: number | undefined;
  /** The queue's memo, when `recall` was set and there is one. */
  readonly memo?: string | undefined;
}

/** What is to become of a delivery. */
export type Verdict =
  /** Finished. The job is gone. */
  | { readonly kind: "ack" }
  /** Comes again after `delayMs`, its attempt charged and no longer suspect. */
  | { readonly kind: "retry"; readonly delayMs: number; readonly error?: string }
  /**
   * Set aside with a reason; the job is kept among the dead letters. Whoever did not run it says how many attempts it had (`attempts`),
   * for the claim has charged one more; by default the dead letter counts the delivery's.
   */
  | { readonly kind: "dead"; readonly error: string; readonly attempts?: number }
  /** Given back unstarted: no attempt charged, suspicion kept, back at the head of its level in the order it had. */
  | { readonly kind: "release" };

export interface Settlement {
  readonly delivery: Delivery;
  readonly verdict: Verdict;
}

/**
 * - `done`: the verdict took effect, now or when it was sent before.
 * - `lost`: the lease is no longer held, somebody else may have the job; nothing was changed.
 *
 * A lease whose deadline passed is held still until another claim takes its jobs back (`fenced`).
 */
export type SettleResult = "done" | "lost";

/** `held`: the lease runs its full time again from the broker's now. `lost`: it is over. */
export type RenewResult = "held" | "lost";

/** Settle, then renew, then claim, in one round trip. Each part may be empty. */
export interface ExchangeRequest {
  readonly settle: readonly Settlement[];
  readonly renew: readonly string[];
  readonly claim?: ClaimRequest | undefined;
  /** Replaces the queue's memo, at most 256 printable ASCII characters (`memo`). */
  readonly remember?: string | undefined;
}

export interface ExchangeReply {
  /** One for each settlement, in order. */
  readonly settled: readonly SettleResult[];
  /** One for each lease, in order. */
  readonly renewed: readonly RenewResult[];
  /** Present when a claim was asked for. */
  readonly claimed?: ClaimReply | undefined;
}

/** How many jobs are where. */
export interface QueueSizes {
  /** Claimable now. */
  readonly ready: number;
  /** Waiting for their due time. */
  readonly delayed: number;
  /** Under a lease. */
  readonly held: number;
  /** Dead letters. */
  readonly dead: number;
  readonly paused: boolean;
}

/** Where a job can be looked at or cleared from. */
export type JobState = "ready" | "delayed" | "held" | "dead";

export interface PeekedJob {
  readonly id: string;
  readonly state: JobState;
  /** Attempts charged so far. */
  readonly attempts: number;
  readonly enqueuedAt: number;
  readonly priority: Priority;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: RawBody;
  /** Delayed jobs: when it is due, Unix milliseconds of the broker's clock. */
  readonly dueAt?: number;
  /** Dead letters: why, and when, Unix milliseconds of the broker's clock. */
  readonly error?: string;
  readonly diedAt?: number;
}

/** A live subscription to a queue's news. */
export interface Watch {
  /** Ends it. `onEnd` is not called. May be called twice. */
  close(): Promise<void>;
}

/** One queue of an engine. */
export interface BrokerQueue {
  readonly name: string;
  /** Final once {@linkcode BrokerQueue.open} resolved. */
  readonly limits: BrokerLimits;
  /** Capability `memo`: the queue's memo as the last {@linkcode BrokerQueue.open} found it, at no further request. */
  readonly memo?: string | undefined;

  /**
   * Connects, makes what is missing, and checks that the engine can keep every job.
   *
   * @throws {BrokerRefusedError} when the engine is set up so that jobs could be lost; the message names the setting and
   * the mend. Such an error is final.
   * @throws {QueueAbsentError} when the queue is not there, and the settings' `create` is false.
   * @throws {BrokerError} when it cannot be reached; may be tried again.
   */
  open(): Promise<void>;

  /**
   * Takes in up to `maxEnqueue` jobs, all or none (`atomic`). Answers one result a job, in order.
   *
   * `requestId` names the enqueue: sent again within `dedupeWindowMs` it adds nothing and answers as it did (engines
   * without `dedupe` may add again).
   */
  enqueue(requestId: string, jobs: readonly NewJob[]): Promise<readonly Enqueued[]>;

  /**
   * Takes deliveries under one lease. Jobs whose lease ran out are suspects and come before new ones of their level.
   * While the queue is paused it answers with none, but for a copy of a claim whose lease is held.
   */
  claim(request: ClaimRequest): Promise<ClaimReply>;

  /**
   * Gives each delivery its own verdict and its own result, in order. One failing never changes another. The attempt is
   * charged by the claim, so a `release` takes it back.
   */
  settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]>;

  /** Extends each lease to a full `leaseMs` from the broker's now. One operation a lease, however many deliveries it covers. */
  renew(leaseIds: readonly string[]): Promise<readonly RenewResult[]>;

  /** Capability `exchange`. */
  exchange?(request: ExchangeRequest): Promise<ExchangeReply>;

  /**
   * Capability `abandon`: releases whatever is held under these leases, known to the caller or not, and ends them, so that a late
   * copy of their claim takes nothing.
   */
  abandon?(leaseIds: readonly string[]): Promise<void>;

  /**
   * Capability `wake`: calls `onWake` soon after an enqueue (of delayed jobs too: whoever sleeps must learn the new due time), a
   * release, a redrive or a resume. It may be called without cause. Resolves once news cannot be missed any more. Calls `onEnd` once if it breaks later.
   */
  watch?(onWake: () => void, onEnd: (error: Error) => void): Promise<Watch>;

  /** Capability `sizes`. */
  sizes?(): Promise<QueueSizes>;

  /**
   * Capability `peek`: up to `limit` jobs of a state, in the order they would be handed out; dead letters oldest first. Who does not look
   * at their bodies gives `withBodies` as false (true by default): an adapter may then leave them empty, and save reading them.
   */
  peek?(state: JobState, limit: number, withBodies?: boolean): Promise<readonly PeekedJob[]>;

  /** Capability `clear`: removes all jobs of these states, answers how many. Held jobs finish as they would have. */
  clear?(states: readonly ("ready" | "delayed" | "dead")[]): Promise<number>;

  /**
   * Capability `redrive`: puts dead letters back as ready jobs with no attempt charged; all, or those with the given ids, at most
   * `limit`, oldest first. Answers how many.
   */
  redrive?(options: { readonly ids?: readonly string[]; readonly limit: number }): Promise<number>;

  /** Capability `pause`: no claim takes anything until resumed. Held jobs go on. Survives restarts. */
  pause?(): Promise<void>;
  resume?(): Promise<void>;
}

const ID = /^[!-{}~]{1,200}$/;

/**
 * Whether a text may be a job's or a lease's id: 1 to 200 printable ASCII characters, no space and no `|` (it separates fields
 * in the engines' records).
 */
export function isJobId(id: string): boolean {
  return ID.test(id);
}

const QUEUE_NAME = /^[A-Za-z0-9_-]{1,100}$/;

/**
 * Whether a text may be a queue's name: 1 to 100 of `A-Z a-z 0-9 _ -`. So it can stand in a key, a subject, a URL and a file name
 * without escaping, and never reach another queue's.
 */
export function isQueueName(name: string): boolean {
  return QUEUE_NAME.test(name);
}

const HEADER_NAME = /^[a-z0-9][a-z0-9_-]{0,99}$/;
const HEADER_VALUE = /^[\t\x20-\x7e]{0,4000}$/;

/** Whether a name may be a job's header: lower-case letters, digits, `_` and `-`, 100 at most. */
export function isHeaderName(name: string): boolean {
  return HEADER_NAME.test(name);
}

/** Whether a text may be a job's header value: printable ASCII or tabs, 4,000 at most. */
export function isHeaderValue(value: string): boolean {
  return HEADER_VALUE.test(value);
}

/** The longest error text kept with a dead letter or a retry; longer ones are cut. */
export const MAX_ERROR_LENGTH = 1000;
