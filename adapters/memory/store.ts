import {
  type ClaimReply,
  type Delivery,
  type Enqueued,
  type JobState,
  MAX_ERROR_LENGTH,
  type NewJob,
  type PeekedJob,
  type QueueSizes,
  type RawBody,
  type RenewResult,
  type Settlement,
  type SettleResult,
} from "../../src/broker.ts";
import { Remembered } from "../remembered.ts";
import { Fifo } from "./fifo.ts";
import { Heap } from "./heap.ts";
import { type Lease, Leases } from "./leases.ts";
import { type Level, levelOf, type Placed, priorityOf, ReadyJobs } from "./levels.ts";

/** At most so many jobs are moved (come due, taken back) by one claim; more than the largest batch needs. */
const MOVES_PER_CLAIM = 1000;

interface Job extends Placed {
  readonly id: string;
  readonly body: RawBody;
  readonly headers: Readonly<Record<string, string>>;
  readonly level: Level;
  /** Unix milliseconds. */
  readonly enqueuedAt: number;
  position: number;
  attempts: number;
  suspect: boolean;
  /** Delayed jobs: when it is due, on the broker's clock. */
  dueAt: number;
  /** Dead letters: why, and when, on the broker's clock. */
  error: string;
  diedAt: number;
}

/** The two faces of the broker's clock: `now` decides, `wall` is shown to people. */
export interface Instant {
  readonly now: number;
  readonly wall: number;
}

interface EnqueueMemory {
  readonly until: number;
  readonly duplicates: readonly boolean[];
}

/**
 * One queue: its jobs and every transition between their states, each one synchronous step. A job is in exactly one
 * place: ready, delayed, a slot of a live lease, or dead. It reads no clock: each step is told the time.
 */
export class QueueStore {
  readonly #ready = new ReadyJobs<Job>();
  readonly #delayed = new Heap<Job>((a, b) =>
    a.dueAt === b.dueAt ? a.position < b.position : a.dueAt < b.dueAt,
  );
  readonly #dead = new Fifo<Job>();
  readonly #leases = new Leases<Job>();
  readonly #ids = new Remembered<number>(1);
  readonly #enqueues = new Remembered<EnqueueMemory>(1);
  readonly #listeners = new Set<() => void>();
  #newsIsComing = false;
  #position = 0;
  #paused = false;
  #memo: string | undefined;

  enqueue(requestId: string, jobs: readonly NewJob[], at: Instant, windowMs: number): Enqueued[] {
    this.#ids.keepFor(windowMs);
    this.#enqueues.keepFor(windowMs);
    const before = this.#enqueues.get(requestId, at.now);
    if (before !== undefined && before.until > at.now) {
      return jobs.map((job, i) => ({ id: job.id, duplicate: before.duplicates[i] ?? false }));
    }
    const answers: Enqueued[] = [];
    for (const job of jobs) {
      const duplicate = job.dedupe && this.#seen(job.id, at.now, windowMs);
      answers.push({ id: job.id, duplicate });
      if (!duplicate) this.#add(job, at);
    }
    const duplicates = answers.map((answer) => answer.duplicate);
    this.#enqueues.set(requestId, { until: at.now + windowMs, duplicates }, at.now);
    return answers;
  }

  claim(leaseId: string, max: number, recall: boolean, at: Instant, leaseMs: number): ClaimReply {
    const { now } = at;
    const known = this.#leases.get(leaseId);
    let deliveries: Delivery[] = [];
    if (known !== undefined) {
      this.#leases.renew(known, now, leaseMs);
      deliveries = this.#deliveries(known);
    } else if (this.#leases.ended(leaseId, now) === undefined) {
      const jobs = this.#take(max, now);
      if (jobs.length > 0) deliveries = this.#deliveries(this.#leases.start(leaseId, jobs, now, leaseMs));
      else this.#leases.bar(leaseId, now);
    }
    const nextDueMs = deliveries.length < max ? this.#nextDueMs(now) : undefined;
    return { deliveries, nextDueMs, memo: recall ? this.#memo : undefined };
  }

  settle(settlements: readonly Settlement[], now: number): SettleResult[] {
    return settlements.map((settlement) => this.#settle(settlement, now));
  }

  renew(leaseId: string, now: number, leaseMs: number): RenewResult {
    const lease = this.#leases.get(leaseId);
    if (lease === undefined) return "lost";
    this.#leases.renew(lease, now, leaseMs);
    return "held";
  }

  abandon(leaseId: string, now: number): void {
    const lease = this.#leases.get(leaseId);
    if (lease === undefined) this.#leases.bar(leaseId, now);
    else for (const job of this.#leases.end(lease, now)) this.#release(job);
  }

  get memo(): string | undefined {
    return this.#memo;
  }

  remember(memo: string): void {
    this.#memo = memo;
  }

  sizes(now: number): QueueSizes {
    const due = this.#delayed.countWhile((job) => job.dueAt <= now);
    return {
      ready: this.#ready.size + due,
      delayed: this.#delayed.size - due,
      held: this.#leases.held,
      dead: this.#dead.size,
      paused: this.#paused,
    };
  }

  peek(state: JobState, limit: number, at: Instant): PeekedJob[] {
    return this.#inState(state, limit, at.now).map((job) => this.#peeked(job, state, at));
  }

  clear(states: readonly JobState[], now: number): number {
    const before = this.#ready.size + this.#delayed.size + this.#dead.size;
    const delayed = this.#delayed.sorted();
    this.#delayed.clear();
    // A delayed job that is due counts as ready, here as in the sizes.
    for (const job of delayed) {
      if (!states.includes(job.dueAt <= now ? "ready" : "delayed")) this.#delayed.push(job);
    }
    if (states.includes("ready")) this.#ready.clear();
    if (states.includes("dead")) this.#dead.clear();
    return before - (this.#ready.size + this.#delayed.size + this.#dead.size);
  }

  redrive(ids: readonly string[] | undefined, limit: number): number {
    const wanted = ids && new Set(ids);
    const jobs = this.#dead.take(limit, (job) => wanted === undefined || wanted.has(job.id));
    for (const job of jobs) {
      job.attempts = 0;
      job.suspect = false;
      this.#append(job);
    }
    return jobs.length;
  }

  setPaused(paused: boolean): void {
    this.#paused = paused;
    if (!paused) this.#news();
  }

  /** Calls back soon after jobs became ready; several at once make one call. Answers a function that ends it. */
  listen(listener: () => void): () => void {
    const own = () => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  #seen(id: string, now: number, windowMs: number): boolean {
    if ((this.#ids.get(id, now) ?? 0) > now) return true;
    this.#ids.set(id, now + windowMs, now);
    return false;
  }

  #add(job: NewJob, at: Instant): void {
    this.#position += 1;
    const added: Job = {
      id: job.id,
      // Copies: what the caller does with its own buffer or object afterwards must not reach the stored job.
      body: typeof job.body === "string" ? job.body : job.body.slice(),
      headers: Object.freeze({ ...job.headers }),
      level: levelOf(job.priority),
      enqueuedAt: at.wall,
      position: this.#position,
      attempts: 0,
      suspect: false,
      dueAt: at.now + job.delayMs,
      error: "",
      diedAt: 0,
    };
    if (job.delayMs > 0) this.#delayed.push(added);
    else this.#ready.append(added);
    // Of a delayed job too: whoever sleeps must learn its time.
    this.#news();
  }

  /** Puts a job at the tail of its level. */
  #append(job: Job): void {
    this.#position += 1;
    job.position = this.#position;
    this.#ready.append(job);
    this.#news();
  }

  #release(job: Job): void {
    job.attempts -= 1;
    this.#ready.putBack(job);
    this.#news();
  }

  /** Takes up to `max` ready jobs, each charged an attempt; what came due or ran out is moved first. */
  #take(max: number, now: number): Job[] {
    if (this.#paused) return [];
    this.#takeBack(now);
    this.#moveDue(now);
    const jobs = this.#ready.take(max);
    for (const job of jobs) job.attempts += 1;
    return jobs;
  }

  /** Ends leases that ran out: their jobs are suspects, keep the attempt charged, and take the place they had. */
  #takeBack(now: number): void {
    let moved = 0;
    for (
      let lease = this.#leases.next();
      lease !== undefined && lease.deadline <= now && moved < MOVES_PER_CLAIM;
      lease = this.#leases.next()
    ) {
      for (const job of this.#leases.end(lease, now)) {
        job.suspect = true;
        this.#ready.putBack(job);
        moved += 1;
      }
    }
  }

  #moveDue(now: number): void {
    for (let moved = 0; moved < MOVES_PER_CLAIM; moved += 1) {
      const job = this.#delayed.peek();
      if (job === undefined || job.dueAt > now) return;
      this.#delayed.pop();
      this.#position += 1;
      job.position = this.#position;
      this.#ready.append(job);
    }
  }

  #nextDueMs(now: number): number | undefined {
    if (this.#paused) return undefined;
    if (this.#ready.size > 0) return 0;
    const dueAt = this.#delayed.peek()?.dueAt ?? Infinity;
    const deadline = this.#leases.next()?.deadline ?? Infinity;
    const next = Math.min(dueAt, deadline);
    return next === Infinity ? undefined : Math.max(0, next - now);
  }

  #settle({ delivery, verdict }: Settlement, now: number): SettleResult {
    const slot = Number(delivery.token);
    const lease = this.#leases.get(delivery.leaseId);
    if (lease === undefined) {
      const lost = this.#leases.ended(delivery.leaseId, now);
      return lost === undefined || lost === "all" || lost.includes(slot) ? "lost" : "done";
    }
    const job = lease.jobs[slot];
    if (job === undefined) return slot < lease.jobs.length ? "done" : "lost";
    this.#leases.settle(lease, slot, now);
    switch (verdict.kind) {
      case "ack":
        break;
      case "release":
        this.#release(job);
        break;
      case "retry":
        job.suspect = false;
        if (verdict.delayMs > 0) {
          this.#position += 1;
          job.position = this.#position;
          job.dueAt = now + verdict.delayMs;
          this.#delayed.push(job);
        } else this.#append(job);
        break;
      case "dead":
        job.error = verdict.error.slice(0, MAX_ERROR_LENGTH);
        job.attempts = verdict.attempts ?? job.attempts;
        job.diedAt = now;
        this.#dead.push(job);
        break;
    }
    return "done";
  }

  #deliveries(lease: Lease<Job>): Delivery[] {
    const deliveries: Delivery[] = [];
    for (let slot = 0; slot < lease.jobs.length; slot += 1) {
      const job = lease.jobs[slot];
      if (job === undefined) continue;
      deliveries.push({
        id: job.id,
        leaseId: lease.id,
        token: String(slot),
        attempt: job.attempts,
        suspect: job.suspect,
        enqueuedAt: job.enqueuedAt,
        headers: job.headers,
        body: typeof job.body === "string" ? job.body : job.body.slice(),
        priority: priorityOf(job.level),
      });
    }
    return deliveries;
  }

  #inState(state: JobState, limit: number, now: number): Job[] {
    switch (state) {
      case "ready":
        return this.#ready.first(
          limit,
          this.#delayed.sorted().filter((job) => job.dueAt <= now),
        );
      case "delayed":
        return this.#delayed
          .sorted()
          .filter((job) => job.dueAt > now)
          .slice(0, limit);
      case "held":
        return this.#leases
          .heldJobs()
          .sort((a, b) => a.level - b.level || a.position - b.position)
          .slice(0, limit);
      case "dead":
        return this.#dead.first(limit);
    }
  }

  #peeked(job: Job, state: JobState, at: Instant): PeekedJob {
    const toWall = at.wall - at.now;
    return {
      id: job.id,
      state,
      attempts: job.attempts,
      enqueuedAt: job.enqueuedAt,
      priority: priorityOf(job.level),
      headers: job.headers,
      body: typeof job.body === "string" ? job.body : job.body.slice(),
      ...(state === "delayed" ? { dueAt: job.dueAt + toWall } : {}),
      ...(state === "dead" ? { error: job.error, diedAt: job.diedAt + toWall } : {}),
    };
  }

  #news(): void {
    if (this.#newsIsComing || this.#listeners.size === 0) return;
    this.#newsIsComing = true;
    queueMicrotask(() => {
      this.#newsIsComing = false;
      for (const listener of [...this.#listeners]) if (this.#listeners.has(listener)) listener();
    });
  }
}
