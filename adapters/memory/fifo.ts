/** First in, first out, in constant time: an array whose spent front is cut off now and then. */
export class Fifo<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    this.#head += 1;
    if (this.#head === this.#items.length) {
      this.#items.length = 0;
      this.#head = 0;
    } else if (this.#head >= 4096 && this.#head * 2 >= this.#items.length) {
      // Each cut moves at most as many items as were taken since the last one, so a shift stays O(1) on average.
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  clear(): void {
    this.#items.length = 0;
    this.#head = 0;
  }

  /** The first `limit` items, oldest first, left in place. */
  first(limit: number): T[] {
    return this.#items.slice(this.#head, this.#head + limit) as T[];
  }

  /** Takes out the items a test holds for, at most `limit`, oldest first. */
  take(limit: number, test: (item: T) => boolean): T[] {
    const taken: T[] = [];
    const kept: T[] = [];
    for (const item of this.first(this.size)) {
      if (taken.length < limit && test(item)) taken.push(item);
      else kept.push(item);
    }
    this.#items = kept;
    this.#head = 0;
    return taken;
  }
}
