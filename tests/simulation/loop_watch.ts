/**
 * Watches one machine's loops from outside: the requests they send, the handlers they start and what they tell, and holds them to their promises.
 *
 * @module
 */
import type { ClaimReply, ClaimRequest, Delivery, Settlement } from "../../src/broker.ts";
import type { EddyEvent } from "../../src/events.ts";
import type { Job } from "../../src/job.ts";
import { checkHeld, checkJust, checkRoom, key, type QueueWatch, type Received } from "./loop_checks.ts";
import type { Machine } from "./machine.ts";
import type { QueueModel } from "./model.ts";
import type { JobView } from "./model_views.ts";
import type { QueuePlan } from "./plan.ts";
import { type Run, RunRecord } from "./run_record.ts";
import type { Fail } from "./violation.ts";

export interface LoopWatchOptions {
  readonly machine: Machine;
  readonly queues: ReadonlyMap<string, { readonly plan: QueuePlan; readonly model: QueueModel }>;
  readonly isDrain: boolean;
  readonly maxInFlight: number;
  readonly fail: Fail;
  /** Whether lost leases and repeats must not happen here. */
  readonly calm: boolean;
}

export class LoopWatch {
  readonly machine: Machine;
  readonly #options: LoopWatchOptions;
  readonly #queues = new Map<string, QueueWatch>();
  readonly #fail: Fail;
  /** Set when `stop()` is called, or a drain's signal aborted. */
  stopCalled = false;
  /** Set when the stop or the drain answered: nothing may be sent any more. */
  ended = false;
  requests = 0;
  starts = 0;
  /** Deliveries that the loop says it took. */
  received = 0;
  #turn = 0;

  constructor(options: LoopWatchOptions) {
    this.machine = options.machine;
    this.#options = options;
    this.#fail = (promised, what) => options.fail(promised, `${options.machine.label}: ${what}`);
    for (const [name, { plan, model }] of options.queues) {
      this.#queues.set(name, {
        plan,
        model,
        received: new Map(),
        claims: new Map(),
        renewals: new Map(),
        refused: false,
        replies: new Map(),
        waiting: 0,
        running: new Set(),
        lastAsked: 0,
        askedBefore: 0,
        lastGot: 0,
        lastStarted: -1,
        order: 0,
      });
    }
  }

  // --- what the link sees ---

  sent(verb: string): void {
    this.requests += 1;
    // A watch that begins too late has to be ended.
    if (this.ended && verb !== "unwatch") this.#fail("requestAfterEnd", `sent ${verb} after its end`);
  }

  claimSent(queueName: string, request: ClaimRequest): void {
    const queue = this.#queue(queueName);
    const { machine } = this;
    const now = machine.now();
    const known = queue.claims.get(request.leaseId);
    if (queue.refused) this.#fail("claimAfterRefusal", `claimed ${request.leaseId} after a refusal`);
    if (this.stopCalled) this.#fail("claimAfterStop", `claimed ${request.leaseId} after its stop`);
    for (const [leaseId, { until }] of queue.claims) {
      if (leaseId !== request.leaseId && until > now) {
        this.#fail("overlappingClaims", `claim ${request.leaseId} was sent while ${leaseId} was under way`);
      }
    }
    queue.claims.set(request.leaseId, {
      until: now + queue.plan.requestTimeoutMs + request.waitMs,
      sent: (known?.sent ?? 0) + 1,
    });
    if (known !== undefined) return;
    checkRoom(queue, request, this.#options.isDrain, this.#fail);
    queue.askedBefore = queue.lastAsked;
    queue.lastAsked = request.max;
  }

  renewSent(queueName: string, leaseIds: readonly string[]): void {
    const queue = this.#queue(queueName);
    const until = this.machine.now() + queue.plan.requestTimeoutMs;
    for (const id of leaseIds) queue.renewals.set(id, until);
  }

  renewEnded(queueName: string, leaseIds: readonly string[]): void {
    for (const id of leaseIds) this.#queue(queueName).renewals.delete(id);
  }

  /** The broker's final error reached the machine. */
  refused(queueName: string): void {
    this.#queue(queueName).refused = true;
  }

  claimFailed(queueName: string, leaseId: string): void {
    // It may be sent again, so it is still known; but it is not under way.
    const claim = this.#queue(queueName).claims.get(leaseId);
    if (claim !== undefined) claim.until = Number.NEGATIVE_INFINITY;
  }

  /** A claim's reply arrived. Whether the loop still takes it, its `claimed` event says. */
  claimAnswered(queueName: string, leaseId: string, reply: ClaimReply): void {
    this.#queue(queueName).replies.set(leaseId, reply);
  }

  verdictsSent(queueName: string, settlements: readonly Settlement[]): void {
    const queue = this.#queue(queueName);
    for (const { delivery, verdict } of settlements) {
      const known = queue.received.get(key(delivery.leaseId, delivery.id));
      const what = `${verdict.kind} of job ${delivery.id} (lease ${delivery.leaseId})`;
      if (known === undefined) {
        this.#fail("unjustVerdict", `sent ${what}, which it never received`);
        continue;
      }
      if (known.lost) this.#fail("verdictAfterLoss", `sent ${what} after it had lost it`);
      this.#checkLease(queue, delivery, what);
      if (known.verdict !== undefined && known.verdict !== verdict.kind) {
        this.#fail("twoVerdicts", `sent ${what} after ${known.verdict}`);
      }
      this.#waitsNoMore(queue, known);
      known.verdict = verdict.kind;
      checkJust(queue, known, verdict, what, this.#fail);
    }
  }

  // --- what the loop tells ---

  readonly told = (event: EddyEvent): void => {
    if (event.type === "stopping") {
      this.stopCalled = true;
    } else if (event.type === "claimed") {
      this.#claimed(this.#queue(event.queue), event.leaseId, event.got);
    } else if (event.type === "finished") {
      const queue = this.#queue(event.queue);
      const known = queue.received.get(key(event.leaseId, event.jobId));
      if (known !== undefined) {
        this.#waitsNoMore(queue, known);
        known.decided = true;
      }
    } else if (event.type === "lost") {
      const queue = this.#queue(event.queue);
      const known = queue.received.get(key(event.leaseId, event.jobId));
      if (known === undefined) return this.#fail("unjustVerdict", `lost ${event.jobId}, which it never had`);
      if (this.#options.calm) this.#fail("notCalm", `lost job ${event.jobId} although nothing fails`);
      this.#waitsNoMore(queue, known);
      known.lost = true;
    } else if (event.type === "abandoned") {
      // Its handler was left behind; it does not count as running any more.
      const queue = this.#queue(event.queue);
      for (const run of [...queue.running]) {
        if (!run.has(event.jobId)) continue;
        queue.running.delete(run);
        for (const record of run.values()) record.left();
      }
    }
  };

  // --- what handlers see ---

  /** A handler was given jobs; answers the record of it, to be told how it ends. */
  started(queueName: string, jobs: readonly Job[]): Run {
    const queue = this.#queue(queueName);
    const { machine } = this;
    const run: Run = new Map();
    this.starts += jobs.length;
    this.#turn += 1;
    if (this.stopCalled) this.#fail("startAfterStop", `started ${jobs[0]?.id} after its stop`);
    if (queue.running.size >= queue.plan.concurrency) {
      this.#fail("tooManyRunning", `started ${jobs[0]?.id} while ${queue.running.size} handlers run`);
    }
    for (const job of jobs) {
      const known = queue.received.get(key(job.leaseId, job.id));
      if (known === undefined) {
        this.#fail(
          "startAfterLoss",
          `started job ${job.id} of lease ${job.leaseId}, which it never received`,
        );
        continue;
      }
      this.#checkStart(queue, job, known, machine.trueNow());
      const record = new RunRecord(job, machine, queue.model, this.#turn, this.#fail);
      known.run = record;
      this.#waitsNoMore(queue, known);
      run.set(job.id, record);
    }
    queue.running.add(run);
    return run;
  }

  /** The record of one job of a run. */
  record(queueName: string, job: Job): RunRecord | undefined {
    return this.#queue(queueName).received.get(key(job.leaseId, job.id))?.run;
  }

  finished(queueName: string, run: Run): void {
    this.#queue(queueName).running.delete(run);
  }

  /** It was started, lost, or what becomes of it is decided. */
  #waitsNoMore(queue: QueueWatch, known: Received): void {
    if (known.waits) queue.waiting -= 1;
    known.waits = false;
  }

  #claimed(queue: QueueWatch, leaseId: string, got: number): void {
    const reply = queue.replies.get(leaseId);
    queue.replies.delete(leaseId);
    if (reply?.deliveries.length !== got) {
      return this.#fail("wrongReport", `claim ${leaseId} was told to have brought ${got} jobs`);
    }
    // One that had to be sent again and brings nothing says nothing of the queue: its lease may be over.
    if (got > 0 || queue.claims.get(leaseId)?.sent === 1) queue.lastGot = got;
    else queue.lastAsked = queue.askedBefore;
    queue.claims.delete(leaseId);
    this.received += got;
    for (const one of reply.deliveries) {
      queue.order += 1;
      this.#turn += 1;
      queue.received.set(key(leaseId, one.id), {
        order: queue.order,
        at: this.#turn,
        attempt: one.attempt,
        run: undefined,
        verdict: undefined,
        lost: false,
        decided: false,
        waits: true,
      });
      queue.waiting += 1;
    }
    checkHeld(queue, this.#options.maxInFlight, this.#fail);
  }

  /**
   * Whether a job held here may come to harm by one that kills the machine now: it was given up for lost already, or it came (or has yet to
   * come) while the killer ran, so that there was no time to give it back.
   */
  mayCome(queueName: string, other: JobView, killer: Job): boolean {
    const known = this.#queue(queueName).received.get(key(other.lease?.id ?? "", other.id));
    const run = this.record(killer.queue, killer);
    return known === undefined || known.lost || run === undefined || run.order < known.at;
  }

  /** Whether no handler runs: one whose lease was lost may go on for long. */
  get isIdle(): boolean {
    return [...this.#queues.values()].every(({ running }) => running.size === 0);
  }

  /** What the broker still holds for this machine although nothing of it runs. */
  heldInVain(): string[] {
    const found: string[] = [];
    for (const { model, received } of this.#queues.values()) {
      for (const job of model.heldBy(this.machine.label, this.machine.trueNow())) {
        const known = received.get(key(job.lease?.id ?? "", job.id));
        // What it gave up for lost comes back when the broker's clock says so, too.
        if (known?.lost !== true && known?.run?.running !== true) found.push(job.id);
      }
    }
    return found;
  }

  /** At the world's end: handlers that never came back must have been told. */
  checkRuns(): void {
    for (const queue of this.#queues.values()) {
      for (const { run } of queue.received.values()) run?.checkAtEnd();
    }
  }

  #checkStart(queue: QueueWatch, job: Job, known: Received, now: number): void {
    if (known.run !== undefined) this.#fail("startedTwice", `started job ${job.id} of ${job.leaseId} twice`);
    if (known.lost) this.#fail("startAfterLoss", `started job ${job.id} after it had lost it`);
    if (known.verdict !== undefined)
      this.#fail("startedTwice", `started job ${job.id} after ${known.verdict}`);
    const lease = queue.model.leases.get(job.leaseId);
    if (lease === undefined || lease.deadline <= now) {
      this.#fail("startAfterLoss", `started job ${job.id} at ${now}; its lease ended at ${lease?.deadline}`);
    }
    if (known.order < queue.lastStarted) this.#fail("startOrder", `started job ${job.id} behind a later one`);
    queue.lastStarted = known.order;
    if (job.suspect && job.attempt === queue.plan.maxAttempts) this.#checkAlone(job, now);
    if (job.attempt > queue.plan.maxAttempts) {
      this.#fail("wrongAttempt", `started job ${job.id} for the ${job.attempt}th time`);
    }
  }

  /** A verdict is sent: its lease must hold, and no renewal of it be under way. */
  #checkLease(queue: QueueWatch, { leaseId, token }: Delivery, what: string): void {
    const lease = queue.model.leases.get(leaseId);
    const now = this.machine.trueNow();
    if (lease?.slots.get(token)?.state === "lost")
      this.#fail("verdictAfterLoss", `sent ${what}; it was lost`);
    if (lease !== undefined && !lease.over && lease.deadline <= now) {
      this.#fail("verdictAfterLoss", `sent ${what} at ${now}; the lease ended at ${lease.deadline}`);
    }
    if (this.machine.hasEarlyTimers) return;
    if ((queue.renewals.get(leaseId) ?? Number.NEGATIVE_INFINITY) > this.machine.now()) {
      this.#fail("racingRenewal", `sent ${what} while the lease was being renewed`);
    }
  }

  #checkAlone(job: Job, now: number): void {
    for (const { model, received } of this.#queues.values()) {
      for (const other of model.heldBy(this.machine.label, now)) {
        if (other.id === job.id && model.name === job.queue) continue;
        // What it has given up for lost comes to no harm through it.
        if (received.get(key(other.lease?.id ?? "", other.id))?.lost === true) continue;
        this.#fail("lastChanceNotAlone", `job ${job.id} started while ${other.id} was held beside it`);
      }
    }
  }

  #queue(name: string): QueueWatch {
    return this.#queues.get(name) as QueueWatch;
  }
}
