/**
 * The leases of one connection. JetStream knows none: each delivery has a deadline of its own at the server, and whoever has its reply subject may
 * settle it. So leases live here, with deadlines that are never later than the server's, and only the connection that claimed knows them.
 *
 * @module
 */
import type { Delivery, Priority, RawBody } from "../../src/broker.ts";
import { Chain, Chained } from "../../src/chain.ts";
import { RememberedLeases } from "../remembered_leases.ts";
import type { Address } from "./address.ts";
import type { Lane } from "./lane.ts";
import { priorityOf } from "./names.ts";
import type { Raw } from "./raw.ts";

/** How long the end of a lease is remembered, in milliseconds. */
const REMEMBER_MS = 60_000;

/** One delivery of ours, as it was handed out: so that whoever gets it back mostly has nothing to look for. */
export class Held implements Delivery {
  readonly id: string;
  readonly leaseId: string;
  readonly token: string;
  readonly attempt: number;
  readonly suspect: boolean;
  readonly enqueuedAt: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Its receiver may spoil it; what the message says is left as it came. */
  readonly body: RawBody;
  readonly priority: Priority;
  /** As it came; from its first renewal on in bytes of its own. */
  message: Raw;
  readonly lease: Lease;
  /** Where acks go. A delivery that the server forgot and handed to us once more has another. */
  reply: Address;
  open = true;
  /** Whether it was given up while its lease went on: nothing can be done with it here. */
  lost = false;

  constructor(message: Raw, lease: Lease) {
    const { lane, info, envelope, handOuts } = message;
    this.id = envelope.id ?? `${lane.kind === "source" ? info.stream : "seq"}:${info.streamSequence}`;
    this.leaseId = lease.id;
    this.token = String(lease.slots.length);
    this.attempt = envelope.attemptsBefore + handOuts;
    this.suspect = envelope.suspect || handOuts > 1;
    this.enqueuedAt = envelope.enqueuedAt ?? info.storedMs;
    this.headers = envelope.headers;
    this.body = message.body;
    this.priority = priorityOf(lane.level);
    this.message = message;
    this.lease = lease;
    this.reply = message.reply;
  }

  /** What the port tells of it: it refers to its lease, and that to it. */
  toJSON(): Delivery {
    const { id, leaseId, token, attempt, suspect, enqueuedAt, headers, body, priority } = this;
    return { id, leaseId, token, attempt, suspect, enqueuedAt, headers, body, priority };
  }
}

/** A delivery while it is open; then what became of it, since one that runs for long would keep the bodies of all that came with it. */
type Slot = Held | "done" | "lost";

export class Lease extends Chained {
  readonly id: string;
  slots: Slot[] = [];
  open = 0;
  /** On the broker's monotonic clock, in milliseconds. */
  deadline: number;
  constructor(id: string, deadline: number) {
    super();
    this.id = id;
    this.deadline = deadline;
  }

  openSlots(): Held[] {
    return this.slots.filter(isOpen);
  }
}

/** Of an ended lease, which deliveries were lost, by their tokens; `all` of one under which nothing was held. */
type Ended = readonly string[] | "all";

const NONE_LOST: Ended = [];

export class Leases {
  readonly #live = new Chain<Lease>();
  readonly #ended = new RememberedLeases<Ended>(
    REMEMBER_MS,
    NONE_LOST,
    (prefix) => this.#live.find(({ id }) => id.startsWith(prefix)) !== undefined,
  );
  #sweptAt = 0;

  /** A lease that is held. One whose deadline has passed ends here. */
  get(id: string, now: number): Lease | undefined {
    const lease = this.#live.find((one) => one.id === id);
    if (lease === undefined || now < lease.deadline) return lease;
    this.end(lease, now);
    return undefined;
  }

  /** A claim for a lease of this id begins. Answers whether it is plain that there was none before; if not, it has to be looked for. */
  begin(id: string): boolean {
    return this.#ended.saw(id);
  }

  /** Whether a lease of this id is over. */
  isOver(id: string, now: number): boolean {
    return this.#ended.get(id, now) !== undefined;
  }

  /** Adds a lease; its slots may be filled until it is returned to the caller. */
  add(lease: Lease, now: number): void {
    this.#sweep(now);
    this.#live.add(lease);
    // While its claim was under way its number may have been forgotten.
    this.#ended.saw(lease.id);
  }

  /** What is known of a delivery: it is held, or its verdict took effect, or it was lost. */
  find(delivery: Pick<Delivery, "leaseId" | "token">, now: number): Held | "done" | "lost" {
    if (delivery instanceof Held && delivery.open) {
      const { lease } = delivery;
      // Of another connection's it is known nothing here, and one that is late ends below.
      if (this.#live.has(lease) && now < lease.deadline) return delivery;
    }
    const { leaseId, token } = delivery;
    const lease = this.get(leaseId, now);
    if (lease === undefined) {
      const lost = this.#ended.get(leaseId, now);
      return lost === undefined || lost === "all" || lost.includes(token) ? "lost" : "done";
    }
    return lease.slots[Number(token)] ?? "lost";
  }

  /** A verdict took effect. */
  settled(held: Held, now: number): void {
    if (!held.open) return;
    const { lease } = held;
    close(held, held.lost ? "lost" : "done");
    if (lease.open === 0 && this.#live.delete(lease)) this.#over(lease, now);
  }

  /** No verdict can take effect: the server hands it out again when its wait for an ack is over. */
  givenUp(held: Held, now: number): void {
    held.lost = true;
    this.settled(held, now);
  }

  /** Ends a lease as it stands: what is open is lost. */
  end(lease: Lease, now: number): void {
    if (!this.#live.delete(lease)) return;
    for (const held of lease.openSlots()) {
      close(held, "lost");
      // The server gives it out again, and nobody tells of that.
      held.message.lane.stir(now);
    }
    this.#over(lease, now);
  }

  #over(lease: Lease, now: number): void {
    const lost: string[] = [];
    const { slots } = lease;
    for (let at = 0; at < slots.length; at++) if (slots[at] === "lost") lost.push(String(at));
    // Whatever refers to the lease still need not keep its slots.
    lease.slots = [];
    this.#ended.set(lease.id, lost.length === 0 ? NONE_LOST : lost, now);
  }

  /** What is held of a lane's message, if it is. */
  held(lane: Lane, sequence: number): Held | undefined {
    for (const lease of this.#live.all()) {
      for (const slot of lease.slots) {
        if (!isOpen(slot)) continue;
        const { info, lane: its } = slot.message;
        if (info.streamSequence === sequence && its === lane) return slot;
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
    for (const lease of this.#live.all()) if (now >= lease.deadline) this.end(lease, now);
  }
}

function close(held: Held, outcome: "done" | "lost"): void {
  const { lease } = held;
  held.open = false;
  lease.open -= 1;
  // The last one takes the lease along.
  if (lease.open > 0 || outcome === "lost") lease.slots[Number(held.token)] = outcome;
}

function isOpen(slot: Slot): slot is Held {
  return typeof slot !== "string";
}
