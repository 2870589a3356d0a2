/**
 * What all processes of a chaos run share. Imports nothing of a runtime: a Worker is among them.
 *
 * @module
 */
import { queue } from "../../src/mod.ts";

/** How long the leases of a run are, in milliseconds. */
export const LEASE_MS = 2_000;
/** How often a job that kills its worker may do so. */
export const POISON_ATTEMPTS = 3;

/** The body is of no use to anyone. */
export const work = queue<{ readonly pad: string }>("chaos");
/** Each of its jobs kills the worker that runs it. */
export const poison = queue<{ readonly pad: string }>("poison");
