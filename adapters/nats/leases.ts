/**
 * The leases of one connection. JetStream knows none: each delivery has a deadline of its own at the server, and whoever has its reply subject may
 * settle it. So leases live here, with deadlines that are never later than the server's, and only the connection that claimed knows them.
 *
 * @module
 */
import type { Delivery } from "../../src/broker.ts";
import { Remembered } from "../remembered.ts";
import type { DeliveryInfo } from "./ack_subject.ts";
import type { Envelope } from "./envelope.ts";
import type { Lane } from "./lane.ts";

/** How long the end of a lease is remembered, in milliseconds. */
const REMEMBER_MS = 60_000;

/** One delivery of ours. */
export interface Held {
  readonly lane: Lane;
  readonly sequence: number;
  readonly info: DeliveryInfo;
  readonly envelope: Envelope;
  readonly delivery: Delivery;
  /** The body as it came; the delivery's is a copy that its receiver may spoil. */
  readonly body: Uint8Array;
  readonly lease: Lease;
  /** Where acks go. A delivery that the server forgot and handed to us once more has another. */
  reply: string;
  open: boolean;
  /** Whether it was given up while its lease went on: nothing can be done with it here. */
  lost: boolean;
}

export class Lease {
  readonly id: string;
  slots: Held[] = [];
  open = 0;
  /** On the broker's monotonic clock, in milliseconds. */
  deadline: number;
  constructor(id: string, deadline: number) {
    this.id = id;
    this.deadline = deadline;
  }

  openSlots(): Held[] {
    return this.slots.filter((held) => held.open);
  }
}

/** Of an ended lease, which slots were lost; `all` of one under which nothing was held. */
type Ended = ReadonlySet<string> | "all";

const NONE_LOST: Ended = new Set();

export class Leases {
  readonly #live = new Map<string, Lease>();
  readonly #ended = new Remembered<Ended>(REMEMBER_MS);
  #sweptAt = 0;

  /** A lease that is held. One whose deadline has passed ends here. */
  get(id: string, now: number): Lease | undefined {
    const lease = this.#live.get(id);
    if (lease === undefined || now < lease.deadline) return lease;
    this.end(lease, now);
    return undefined;
  }

  /** Whether a lease of this id is over. */
  isOver(id: string, now: number): boolean {
    return this.#ended.get(id, now) !== undefined;
  }

  /** Adds a lease; its slots may be filled until it is returned to the caller. */
  add(lease: Lease, now: number): void {
    this.#sweep(now);
    this.#live.set(lease.id, lease);
  }

  /** What is known of a delivery: it is held, or its verdict took effect, or it was lost. */
  find(leaseId: string, token: string, now: number): Held | "done" | "lost" {
    const lease = this.get(leaseId, now);
    if (lease === undefined) {
      const lost = this.#ended.get(leaseId, now);
      return lost === undefined || lost === "all" || lost.has(token) ? "lost" : "done";
    }
    const held = lease.slots[Number(token)];
    if (held === undefined) return "lost";
    if (held.open) return held;
    return held.lost ? "lost" : "done";
  }

  /** A verdict took effect. */
  settled(held: Held, now: number): void {
    if (!held.open) return;
    close(held);
    const { lease } = held;
    if (lease.open > 0 || !this.#live.delete(lease.id)) return;
    const lost = lease.slots.filter((one) => one.lost).map((one) => one.delivery.token);
    lease.slots = [];
    this.#ended.set(lease.id, lost.length === 0 ? NONE_LOST : new Set(lost), now);
  }

  /** No verdict can take effect: the server hands it out again when its wait for an ack is over. */
  givenUp(held: Held, now: number): void {
    held.lost = true;
    this.settled(held, now);
  }

  /** Ends a lease as it stands: what is open is lost. */
  end(lease: Lease, now: number): void {
    if (!this.#live.delete(lease.id)) return;
    const lost = new Set<string>();
    for (const held of lease.slots) {
      if (held.lost) lost.add(held.delivery.token);
      if (!held.open) continue;
      lost.add(held.delivery.token);
      close(held);
      // The server gives it out again, and nobody tells of that.
      held.lane.stir(now);
    }
    // Whatever refers to the lease still need not keep its jobs.
    lease.slots = [];
    this.#ended.set(lease.id, lost, now);
  }

  /** What is held of a lane's message, if it is. */
  held(lane: Lane, sequence: number): Held | undefined {
    for (const lease of this.#live.values()) {
      for (const held of lease.slots) {
        if (held.open && held.sequence === sequence && held.lane === lane) return held;
      }
    }
    return undefined;
  }

  /** Marks an id as used up: a late copy of its claim takes nothing. */
  bar(id: string, now: number): void {
    if (this.#ended.get(id, now) === undefined) this.#ended.set(id, "all", now);
  }

  /** Leases that nobody asked about again. */
  #sweep(now: number): void {
    if (now - this.#sweptAt < 1000) return;
    this.#sweptAt = now;
    for (const lease of [...this.#live.values()]) if (now >= lease.deadline) this.end(lease, now);
  }
}

function close(held: Held): void {
  held.open = false;
  held.lease.open -= 1;
}
