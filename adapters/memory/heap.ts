/** A binary min-heap. `before(a, b)` must be a strict order; equal items come out in no particular order. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #before: (a: T, b: T) => boolean;

  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  /** The least item, left in place. */
  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    const items = this.#items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = items[parent] as T;
      if (!this.#before(item, above)) break;
      items[at] = above;
      at = parent;
    }
    items[at] = item;
  }

  /** Takes the least item out. */
  pop(): T | undefined {
    const items = this.#items;
    const least = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return least;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && this.#before(items[child + 1] as T, items[child] as T)) child += 1;
      const below = items[child] as T;
      if (!this.#before(below, last)) break;
      items[at] = below;
      at = child;
    }
    items[at] = last;
    return least;
  }

  clear(): void {
    this.#items.length = 0;
  }

  /** How many items satisfy a test that no item can satisfy unless its heap parent does ("due by now"). */
  countWhile(test: (item: T) => boolean): number {
    const items = this.#items;
    const open = [0];
    let count = 0;
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (at >= items.length || !test(items[at] as T)) continue;
      count += 1;
      open.push(2 * at + 1, 2 * at + 2);
    }
    return count;
  }

  /** All items in order; the heap stays as it is. */
  sorted(): T[] {
    return [...this.#items].sort((a, b) => (this.#before(a, b) ? -1 : 1));
  }
}
