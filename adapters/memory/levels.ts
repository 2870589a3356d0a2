import type { Priority } from "../../src/broker.ts";
import { Fifo } from "./fifo.ts";
import { Heap } from "./heap.ts";

/** A job's level: 0 high, 1 normal, 2 low. */
export type Level = 0 | 1 | 2;

/** A waiting level is passed over at most this often in a row before it gives a job: so every eighth is its own. */
const MOST_PASSED_OVER = 7;

const NAMES: readonly Priority[] = ["high", "normal", "low"];

export function levelOf(priority: Priority): Level {
  return priority === "high" ? 0 : priority === "normal" ? 1 : 2;
}

export function priorityOf(level: Level): Priority {
  return NAMES[level] as Priority;
}

/** A job that has a place among the ready ones of its level. */
export interface Placed {
  readonly level: Level;
  /** Grows with each arrival at a tail; kept by a job that is given back. */
  position: number;
}

/**
 * The ready jobs of one level. Every job that was ever taken had a smaller position than all still in `arrived`, so
 * those given back come first, among themselves by position.
 */
class ReadyLevel<J extends Placed> {
  readonly arrived = new Fifo<J>();
  readonly returned = new Heap<J>((a, b) => a.position < b.position);

  get size(): number {
    return this.arrived.size + this.returned.size;
  }

  shift(): J | undefined {
    return this.returned.size > 0 ? this.returned.pop() : this.arrived.shift();
  }
}

/** The ready jobs of a queue, high first, no level starving. */
export class ReadyJobs<J extends Placed> {
  readonly #levels = [new ReadyLevel<J>(), new ReadyLevel<J>(), new ReadyLevel<J>()] as const;
  /** By level: how many deliveries passed it over since it last gave one, all the while it had jobs waiting. */
  readonly #passedOver: [number, number, number] = [0, 0, 0];

  get size(): number {
    return this.#levels[0].size + this.#levels[1].size + this.#levels[2].size;
  }

  /** Joins the tail of its level. Its position must be the largest so far. */
  append(job: J): void {
    this.#levels[job.level].arrived.push(job);
  }

  /** Takes the place it had. */
  putBack(job: J): void {
    this.#levels[job.level].returned.push(job);
  }

  /** Takes up to `max` jobs: high first, within a level oldest first. */
  take(max: number): J[] {
    const taken: J[] = [];
    let mixed = false;
    while (taken.length < max) {
      const level = this.#nextLevel();
      if (level === undefined) break;
      const job = this.#levels[level].shift() as J;
      if (taken.length > 0 && taken[0]?.level !== level) mixed = true;
      taken.push(job);
    }
    // Stable: within a level the order stays.
    return mixed ? taken.sort((a, b) => a.level - b.level) : taken;
  }

  /** The first `limit` jobs by level and age, left in place; `others` (by level) stand behind those of their level. */
  first(limit: number, others: readonly J[]): J[] {
    const found: J[] = [];
    this.#levels.forEach((level, number) => {
      if (found.length >= limit) return;
      found.push(...level.returned.sorted(), ...level.arrived.first(limit));
      found.push(...others.filter((job) => job.level === number));
    });
    return found.slice(0, limit);
  }

  clear(): void {
    for (const level of this.#levels) {
      level.arrived.clear();
      level.returned.clear();
    }
  }

  #nextLevel(): Level | undefined {
    const [high, normal, low] = this.#levels;
    const hasNormal = normal.size > 0;
    const hasLow = low.size > 0;
    const passed = this.#passedOver;
    let level: Level;
    if (hasNormal && passed[1] >= MOST_PASSED_OVER) level = 1;
    else if (hasLow && passed[2] >= MOST_PASSED_OVER) level = 2;
    else if (high.size > 0) level = 0;
    else if (hasNormal) level = 1;
    else if (hasLow) level = 2;
    else return undefined;
    if (!hasNormal || level === 1) passed[1] = 0;
    else if (level < 1) passed[1] += 1;
    if (!hasLow || level === 2) passed[2] = 0;
    else passed[2] += 1;
    return level;
  }
}
