/**
 * A set of things that come and go all the time, in the order in which they came.
 *
 * A `Set` or `Map` is the wrong thing for that: it makes itself anew every few removals, and each old table of the engine's still refers to the next one and to what was in
 * it. Once one table is old to the garbage collector, all later ones with their contents are kept until it collects everything: some milliseconds each time, and tens of
 * megabytes. What leaves a chain is referred to by nothing.
 *
 * @module
 */

/** What can stand in a chain, in one at a time. */
export class Chained {
  before: Chained | undefined;
  after: Chained | undefined;
  chain: object | undefined;
}

export class Chain<T extends Chained> {
  #first: Chained | undefined;
  #last: Chained | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(link: T): boolean {
    return link.chain === this;
  }

  /** Puts it at the end. */
  add(link: T): void {
    link.chain = this;
    link.before = this.#last;
    if (this.#last === undefined) this.#first = link;
    else this.#last.after = link;
    this.#last = link;
    this.#size += 1;
  }

  /** Takes it out; answers whether it was in. */
  delete(link: T): boolean {
    if (link.chain !== this) return false;
    const { before, after } = link;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    link.before = undefined;
    link.after = undefined;
    link.chain = undefined;
    this.#size -= 1;
    return true;
  }

  /** All that are in now: a list of its own, so that any may leave meanwhile. */
  all(): T[] {
    const all: T[] = [];
    for (let link = this.#first; link !== undefined; link = link.after) all.push(link as T);
    return all;
  }

  /** The first that passes. */
  find(passes: (link: T) => boolean): T | undefined {
    let link = this.#first;
    while (link !== undefined && !passes(link as T)) link = link.after;
    return link as T | undefined;
  }

  /** Takes all out. */
  clear(): void {
    for (const link of this.all()) this.delete(link);
  }
}
