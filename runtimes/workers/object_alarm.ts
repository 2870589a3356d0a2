/**
 * An object's one alarm, set only when it must become earlier or later: each setting is a write that is paid for.
 *
 * @module
 */
import type { AlarmStorage } from "./types.ts";

export class ObjectAlarm {
  readonly #storage: AlarmStorage;
  readonly #failed: (error: unknown) => void;
  /** Unix milliseconds; `null` for none, `undefined` while not known (the object was just made). */
  #at: number | null | undefined;

  /** @param failed is told when the storage did not take it; the object is then about to be started anew. */
  constructor(storage: AlarmStorage, failed: (error: unknown) => void) {
    this.#storage = storage;
    this.#failed = failed;
  }

  /** The alarm went off: there is none now. */
  fired(): void {
    this.#at = null;
  }

  /** Has it go off at `at`, Unix milliseconds, whatever it was set to. */
  set(at: number): void {
    if (this.#at === at) return;
    this.#at = at;
    this.#storage.setAlarm(at).catch(this.#failed);
  }

  /** Has it go off at `at` or before. */
  setBy(at: number): void {
    if (typeof this.#at !== "number" || at < this.#at) this.set(at);
  }

  clear(): void {
    if (this.#at === null) return;
    this.#at = null;
    this.#storage.deleteAlarm().catch(this.#failed);
  }
}
