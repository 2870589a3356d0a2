/**
 * Whether there is reason to believe that a claim would bring something. Pure.
 *
 * @module
 */
export class Appetite {
  #isHungry = true;
  /** Whether there was a reason to look while a claim was under way, which its answer may not know of: news, a time that came, or a watch that began and tells of nothing before. */
  #isWoken = false;
  #lastGot = 0;
  /** Whether the last claim told nothing. */
  #wasIdle = false;

  get isHungry(): boolean {
    return this.#isHungry;
  }

  /** How many the last claim brought. */
  get lastGot(): number {
    return this.#lastGot;
  }

  /** There is something: it was given back, or its lease was lost. */
  rouse(): void {
    this.#isHungry = true;
  }

  /** There may be something now, whatever a claim under way says. */
  wake(): void {
    this.#isHungry = true;
    this.#isWoken = true;
  }

  /** A claim is being sent. */
  claims(): void {
    this.#isHungry = false;
    this.#isWoken = false;
  }

  /**
   * A claim that asked for so many brought so many. Answers whether that says anything of the queue: one that was sent `again` and brings nothing may be one whose lease is
   * over, and says nothing; but the next one does.
   */
  answered(asked: number, got: number, again: boolean): boolean {
    this.#lastGot = got;
    const isIdle = got === 0 && again && !this.#wasIdle;
    this.#wasIdle = isIdle;
    this.#isHungry = got >= asked || this.#isWoken || isIdle;
    return !isIdle;
  }
}
