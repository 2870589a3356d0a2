/// <reference path="./cloudflare.d.ts" />
/**
 * The parts of the Workers runtime that Eddy uses, by their shape. Objects of `@cloudflare/workers-types` fit them, and no global type is declared.
 *
 * @module
 */
import type { ObjectStorage } from "../../adapters/sqlite/durable_object_driver.ts";

/** What every invocation is given. */
export interface InvocationContext {
  waitUntil(promise: Promise<unknown>): void;
}

/** A cron's event. */
export interface ScheduledEvent {
  readonly cron: string;
  readonly scheduledTime: number;
}

/** An object's storage: SQL, a few keys, and its one alarm (Unix milliseconds). */
export interface AlarmStorage extends ObjectStorage {
  setAlarm(scheduledTime: number): Promise<void>;
  getAlarm(): Promise<number | null>;
  deleteAlarm(): Promise<void>;
  /** Resolves when all that was written is confirmed. */
  sync(): Promise<void>;
  get<T>(key: string): Promise<T | undefined>;
  put(key: string, value: unknown): Promise<void>;
}

/** What a Durable Object is given when it is made. */
export interface ObjectContext extends InvocationContext {
  readonly storage: AlarmStorage;
}

/** A namespace of Durable Objects, as a binding gives it. */
export interface ObjectNamespace<Id = unknown> {
  idFromName(name: string): Id;
  get(id: Id): unknown;
}
