/**
 * Seeded dice. Each part of a world throws its own, made from the world's seed and the part's name: taking one part out of a world leaves the
 * throws of the others as they were, so that a failing world can be made smaller.
 *
 * @module
 */
import { seededRandom } from "../../runtimes/simulated.ts";

/** A 32-bit hash of a text (FNV-1a), started from a seed. */
function hash(seed: number, text: string): number {
  let value = (2_166_136_261 ^ seed) >>> 0;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 16_777_619) >>> 0;
  }
  return value;
}

export class Dice {
  readonly next: () => number;

  /** @param name whose dice they are. */
  constructor(seed: number, name: string) {
    this.next = seededRandom(hash(seed, name));
  }

  /** A whole number from `least` to `most`, both included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** True this often. */
  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.next() * from.length)] as T;
  }

  /** One of the choices, each as often as its weight says. */
  weighted<T>(choices: readonly (readonly [weight: number, choice: T])[]): T {
    let at = this.next() * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, choice] of choices) {
      at -= weight;
      if (at < 0) return choice;
    }
    return (choices[choices.length - 1] as readonly [number, T])[1];
  }
}
