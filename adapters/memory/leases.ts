import { RememberedLeases } from "../remembered_leases.ts";

/** How long an ended lease is remembered at least. */
const REMEMBER_LEASE_MS = 60_000;

/** A claim's hold over its jobs. A slot is emptied when its delivery is settled. */
export class Lease<J> {
  readonly id: string;
  readonly jobs: (J | undefined)[];
  /** How many slots are still filled. */
  open: number;
  deadline = 0;
  /** The line it stands in, and its neighbours there. */
  line: Line<J> | undefined;
  before: Lease<J> | undefined;
  after: Lease<J> | undefined;

  constructor(id: string, jobs: J[]) {
    this.id = id;
    this.jobs = jobs;
    this.open = jobs.length;
  }
}

/** The live leases of one length: renewals go to the end, so the first is always the next to run out. */
class Line<J> {
  first: Lease<J> | undefined;
  last: Lease<J> | undefined;

  add(lease: Lease<J>): void {
    lease.line = this;
    lease.before = this.last;
    lease.after = undefined;
    if (this.last) this.last.after = lease;
    else this.first = lease;
    this.last = lease;
  }

  remove(lease: Lease<J>): void {
    if (lease.before) lease.before.after = lease.after;
    else this.first = lease.after;
    if (lease.after) lease.after.before = lease.before;
    else this.last = lease.before;
    lease.line = undefined;
    lease.before = undefined;
    lease.after = undefined;
  }
}

/** The slots of a lease that were lost; `"all"` of one that never held anything as far as is known. */
export type LostSlots = readonly number[] | "all";

const NONE: LostSlots = [];

/** The leases of a queue: live ones by id and by deadline, ended ones for a while by id. */
export class Leases<J> {
  readonly #live = new Map<string, Lease<J>>();
  readonly #lines = new Map<number, Line<J>>();
  /** Of each ended lease: the slots that were lost, not settled. */
  readonly #ended = new RememberedLeases<LostSlots>(REMEMBER_LEASE_MS, NONE);
  #held = 0;

  /** How many jobs are held. */
  get held(): number {
    return this.#held;
  }

  get(id: string): Lease<J> | undefined {
    return this.#live.get(id);
  }

  /** The lost slots of an ended lease; `undefined` when no such lease is known. */
  ended(id: string, now: number): LostSlots | undefined {
    return this.#ended.get(id, now);
  }

  start(id: string, jobs: J[], now: number, leaseMs: number): Lease<J> {
    const lease = new Lease(id, jobs);
    this.#live.set(id, lease);
    this.#held += jobs.length;
    this.renew(lease, now, leaseMs);
    return lease;
  }

  renew(lease: Lease<J>, now: number, leaseMs: number): void {
    lease.line?.remove(lease);
    let line = this.#lines.get(leaseMs);
    if (line === undefined) {
      line = new Line();
      this.#lines.set(leaseMs, line);
    }
    lease.deadline = now + leaseMs;
    line.add(lease);
  }

  /** Empties one slot; the lease ends with its last one. */
  settle(lease: Lease<J>, slot: number, now: number): void {
    lease.jobs[slot] = undefined;
    lease.open -= 1;
    this.#held -= 1;
    if (lease.open > 0) return;
    this.#drop(lease);
    this.#ended.set(lease.id, NONE, now);
  }

  /** Ends a lease as it stands and answers the jobs it still held; their verdicts will be `lost`. */
  end(lease: Lease<J>, now: number): J[] {
    const jobs: J[] = [];
    const lost: number[] = [];
    lease.jobs.forEach((job, slot) => {
      if (job === undefined) return;
      jobs.push(job);
      lost.push(slot);
    });
    this.#held -= jobs.length;
    this.#drop(lease);
    this.#ended.set(lease.id, lost, now);
    return jobs;
  }

  /** Marks an id as used up, so that a late copy of its claim takes nothing. */
  bar(id: string, now: number): void {
    if (this.#ended.get(id, now) === undefined) this.#ended.set(id, "all", now);
  }

  /** The live lease with the earliest deadline. */
  next(): Lease<J> | undefined {
    let next: Lease<J> | undefined;
    for (const line of this.#lines.values()) {
      if (line.first && (next === undefined || line.first.deadline < next.deadline)) next = line.first;
    }
    return next;
  }

  /** All jobs held now. */
  heldJobs(): J[] {
    const jobs: J[] = [];
    for (const lease of this.#live.values()) {
      for (const job of lease.jobs) if (job !== undefined) jobs.push(job);
    }
    return jobs;
  }

  #drop(lease: Lease<J>): void {
    this.#live.delete(lease.id);
    lease.line?.remove(lease);
  }
}
