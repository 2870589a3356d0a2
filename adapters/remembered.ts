/**
 * A map that forgets by itself: an entry lives for at least `keepMs`, less than three times as long. Two generations, so
 * forgetting costs nothing an entry and needs no timer.
 */
export class Remembered<V> {
  #keepMs: number;
  #young = new Map<string, V>();
  #old = new Map<string, V>();
  #turnedAt: number | undefined;

  constructor(keepMs: number) {
    this.#keepMs = keepMs;
  }

  /** Keeps entries for at least `keepMs` from now on, if that is longer than before. */
  keepFor(keepMs: number): void {
    this.#keepMs = Math.max(this.#keepMs, keepMs);
  }

  get(key: string, now: number): V | undefined {
    // To look a text up costs more than to see that there is nothing to find.
    if (this.#young.size === 0 && this.#old.size === 0) return undefined;
    this.#turn(now);
    return this.#young.get(key) ?? this.#old.get(key);
  }

  set(key: string, value: V, now: number): void {
    this.#turn(now);
    this.#young.set(key, value);
  }

  #turn(now: number): void {
    if (this.#turnedAt === undefined) this.#turnedAt = now;
    const ageMs = now - this.#turnedAt;
    if (ageMs < this.#keepMs) return;
    this.#old = ageMs < 2 * this.#keepMs ? this.#young : new Map();
    this.#young = new Map();
    this.#turnedAt = now;
  }
}
