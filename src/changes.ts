/**
 * Waiting for a condition that events bring about.
 *
 * @module
 */
import type { Platform } from "./platform.ts";

export class Changes {
  #waiters: (() => void)[] = [];

  /** Something changed: whoever waits looks again. */
  readonly notify = (): void => {
    if (this.#waiters.length === 0) return;
    for (const look of [...this.#waiters]) look();
  };

  /** Resolves to true once the condition holds, to false after `ms` without. */
  until(platform: Platform, ms: number, condition: () => boolean): Promise<boolean> {
    if (condition()) return Promise.resolve(true);
    if (ms <= 0) return Promise.resolve(false);
    return new Promise((resolve) => {
      const finish = (held: boolean) => {
        cancel();
        this.#waiters = this.#waiters.filter((other) => other !== look);
        resolve(held);
      };
      const look = () => {
        if (condition()) finish(true);
      };
      const cancel =
        ms === Number.POSITIVE_INFINITY ? () => {} : platform.setTimer(ms, () => finish(condition()));
      this.#waiters.push(look);
    });
  }
}
