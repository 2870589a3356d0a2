/**
 * What a worker, a drain and a producer are given to work with, checked for callers without types: what is missing or of the wrong kind is told at once,
 * by its name, before anything is opened.
 *
 * @module
 */
import { kindOf } from "./known_fields.ts";

/** @throws {TypeError} when it is not what `defineWorker` answered. */
export function assertDefinition(what: string, definition: unknown): void {
  const { kind, queues } = (definition ?? {}) as { kind?: unknown; queues?: unknown };
  if (kind === "eddy-worker" && Array.isArray(queues)) return;
  throw new TypeError(
    `Cannot ${what}: the worker is ${kind === undefined ? kindOf(definition) : "of another kind"}; give what defineWorker({ … }) answered`,
  );
}

/** @throws {TypeError} when the broker or the platform is none. */
export function assertEngines(
  what: string,
  deps: { readonly broker: unknown; readonly platform: unknown },
): void {
  if (!has(deps.broker, "queue"))
    refuse(what, "broker", deps.broker, "give one, as in new MemoryBroker({ now })");
  if (!has(deps.platform, "setTimer"))
    refuse(what, "platform", deps.platform, "give one, as in bunPlatform()");
}

/** @throws {TypeError} when the log or the listener is neither left out nor a function. */
export function assertHearers(what: string, deps: { readonly log?: unknown; readonly on?: unknown }): void {
  for (const field of ["log", "on"] as const) {
    const value = deps[field];
    if (value !== undefined && typeof value !== "function") refuse(what, field, value, "give a function");
  }
}

/** @throws {TypeError} when it is neither left out nor an AbortSignal. */
export function assertSignal(what: string, signal: unknown, field = "signal"): void {
  assertOffers(what, field, signal, "addEventListener", "give the signal of an AbortController");
}

/** @throws {TypeError} when it is neither left out nor has such a method. */
export function assertOffers(
  what: string,
  field: string,
  value: unknown,
  method: string,
  mend: string,
): void {
  if (value !== undefined && !has(value, method)) refuse(what, field, value, mend);
}

/** @throws {TypeError} when it is neither true nor false. */
export function assertFlag(what: string, field: string, value: unknown): void {
  if (typeof value !== "boolean") refuse(what, field, value, "give true or false");
}

/** @throws {TypeError} when they are neither left out nor a list of texts. */
export function assertNames(what: string, names: unknown): void {
  if (names === undefined) return;
  if (!Array.isArray(names)) refuse(what, "queues", names, "give a list of queues' names");
  const odd = names.findIndex((name) => typeof name !== "string");
  if (odd >= 0) refuse(what, `queues[${odd}]`, names[odd], "give a queue's name");
}

function has(value: unknown, method: string): boolean {
  return typeof (value as Record<string, unknown> | null | undefined)?.[method] === "function";
}

function refuse(what: string, field: string, value: unknown, mend: string): never {
  throw new TypeError(
    `Cannot ${what}: ${field} is ${value === undefined ? "missing" : kindOf(value)}; ${mend}`,
  );
}
