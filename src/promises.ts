/**
 * Small helpers about promises.
 *
 * @module
 */

/** Whether a value can be waited for. */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}

/** A promise together with the functions that settle it. */
export function withResolvers<T>(): {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: unknown) => void;
} {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** What a callback of the user's answered is not waited for; should it be a promise, its rejection ends nothing. May throw what such a `then` throws. */
export function ignoreRejection(answer: unknown): void {
  if (isPromise(answer)) answer.then(undefined, () => {});
}
