/**
 * Which delayed jobs there are, by due time: what a connection knows of them without asking. Pure.
 *
 * Each delayed job is a message of a subject of its own that holds its due time, and the server tells every worker of new ones. So no job is handed
 * out before it is due, and none waits at a consumer.
 *
 * @module
 */
import { parseLater } from "./names.ts";

export class LaterIndex {
  readonly #dueAt = new Map<string, number>();
  /** The earliest due time; `undefined` when it has to be looked for. */
  #next: number | undefined = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#dueAt.size;
  }

  /** The earliest due time, Unix milliseconds of the server's clock; `Infinity` when there is none. */
  get nextDueAt(): number {
    if (this.#next === undefined) {
      this.#next = Number.POSITIVE_INFINITY;
      for (const dueAt of this.#dueAt.values()) this.#next = Math.min(this.#next, dueAt);
    }
    return this.#next;
  }

  /** Learns of a delayed job; other subjects are passed over. */
  add(subject: string): void {
    const parsed = parseLater(subject);
    if (parsed === undefined) return;
    this.#dueAt.set(subject, parsed.dueAt);
    if (this.#next !== undefined) this.#next = Math.min(this.#next, parsed.dueAt);
  }

  remove(subject: string): void {
    if (this.#dueAt.delete(subject)) this.#next = undefined;
  }

  clear(): void {
    this.#dueAt.clear();
    this.#next = Number.POSITIVE_INFINITY;
  }

  /** Up to `max` subjects that are due at a time, earliest first. */
  due(at: number, max: number): string[] {
    if (this.nextDueAt > at) return [];
    const due = [...this.#dueAt].filter(([, dueAt]) => dueAt <= at);
    due.sort((a, b) => a[1] - b[1]);
    return due.slice(0, max).map(([subject]) => subject);
  }
}
