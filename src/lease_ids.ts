/**
 * The ids of one loop's leases. Random once: a random one for each claim costs more to make, to compare and to look up than all else that it is for.
 *
 * @module
 */
export class LeaseIds {
  readonly #prefix: string;
  #count = 0;

  /** @param unique unique among all workers. */
  constructor(unique: string) {
    this.#prefix = `${unique}.`;
  }

  /** One that was never used before. */
  next(): string {
    this.#count += 1;
    return this.#prefix + this.#count.toString(36);
  }
}
