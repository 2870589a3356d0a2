/**
 * Bounds on what is waited for.
 *
 * @module
 */
import { BrokerError } from "./errors.ts";
import type { CancelTimer, Platform } from "./platform.ts";
import { noError } from "./thrown.ts";

/** A platform, or what shares one of its timers. */
interface Timer {
  setTimer(ms: number, fn: () => void, now?: number): CancelTimer;
}

/**
 * Settles as `work` does, or rejects with a {@linkcode BrokerError} after `ms`. An adapter has a deadline of its own; this is the loop's,
 * so that no adapter's fault can make it stand still.
 */
export function withDeadline<T>(
  timer: Timer,
  ms: number,
  broker: string,
  verb: string,
  work: Promise<T>,
): Promise<T>;
/** The same, of what `made` makes of the answer; what it throws is the rejection. `now` is what the timer's clock has just said. */
export function withDeadline<T, R>(
  timer: Timer,
  ms: number,
  broker: string,
  verb: string,
  work: Promise<T>,
  made: (value: T) => R,
  now?: number,
): Promise<R>;
export function withDeadline<T, R>(
  timer: Timer,
  ms: number,
  broker: string,
  verb: string,
  work: Promise<T>,
  made?: (value: T) => R,
  now?: number,
): Promise<T | R> {
  return new Promise<T | R>((resolve, reject) => {
    const late = () => {
      reject(new BrokerError(broker, verb, `The ${broker} broker did not answer ${verb} within ${ms} ms`));
    };
    const cancel = timer.setTimer(ms, late, now);
    work.then(
      (value) => {
        cancel();
        if (made === undefined) return resolve(value);
        try {
          resolve(made(value));
        } catch (error) {
          reject(asError(error));
        }
      },
      (error: unknown) => {
        cancel();
        reject(asError(error));
      },
    );
  });
}

/** Resolves when `work` has settled, either way, or after `ms`. */
export function settledWithin(platform: Platform, ms: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = platform.setTimer(ms, resolve);
    const finish = () => {
      cancel();
      resolve();
    };
    work.then(finish, finish);
  });
}

/** What was thrown, as an Error. */
export function asError(thrown: unknown): Error {
  try {
    if (thrown instanceof Error) return thrown;
  } catch {
    // Something that cannot even be looked at.
  }
  return new Error(noError(thrown));
}
