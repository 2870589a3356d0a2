/**
 * Limits of an invocation that a caller sets instead of a platform's.
 *
 * @module
 */
import { assertKnownFields } from "../src/known_fields.ts";
import type { PlatformLimits } from "../src/platform.ts";

/**
 * Replaces some limits.
 *
 * @param whose what they are limits of, for the message.
 * @throws {TypeError} when one of its own is unknown.
 * @throws {RangeError} when one is no whole number from 1 on.
 */
export function withOwnLimits(
  whose: string,
  usual: PlatformLimits,
  own: Partial<PlatformLimits>,
): PlatformLimits {
  const limits = { ...usual };
  assertKnownFields(`set the limits of ${whose}`, "", own, new Set(Object.keys(limits)));
  for (const [field, value] of Object.entries(own)) {
    if (value === undefined) continue;
    if (!Number.isSafeInteger(value) || value < 1)
      refuse(whose, field, String(value), "give a whole number from 1 on");
    limits[field as keyof PlatformLimits] = value;
  }
  return Object.freeze(limits);
}

/** @throws {RangeError} always. */
export function refuse(whose: string, field: string, is: string, mend: string): never {
  throw new RangeError(
    `Cannot set the limits of ${whose}: ${field.slice(0, 60)} is ${is.slice(0, 60)}; ${mend}`,
  );
}
