/**
 * The steps that conformance cases are made of.
 *
 * @module
 */

import type {
  BrokerQueue,
  ClaimReply,
  Delivery,
  Enqueued,
  NewJob,
  RawBody,
  Settlement,
  SettleResult,
  Verdict,
} from "../../src/broker.ts";

let serial = 0;

function next(prefix: string): string {
  serial += 1;
  return `${prefix}${serial}`;
}

/** A lease id never used before. */
export function leaseId(): string {
  return next("lease:");
}

/** A job with defaults: its id is its body. */
export function job(id: string, more: Partial<NewJob> = {}): NewJob {
  return { id, body: id, headers: {}, priority: "normal", delayMs: 0, dedupe: false, ...more };
}

/** Enqueues jobs (an id stands for a default job) under a request id of their own. */
export function put(queue: BrokerQueue, ...jobs: (string | NewJob)[]): Promise<readonly Enqueued[]> {
  return queue.enqueue(
    next("request:"),
    jobs.map((one) => (typeof one === "string" ? job(one) : one)),
  );
}

/** `n` ids: `a1`, `a2`, … */
export function idsOf(prefix: string, n: number): string[] {
  return Array.from({ length: n }, (_, i) => `${prefix}${i + 1}`);
}

/** A claim under a lease of its own, which waits for nothing. */
export function claim(queue: BrokerQueue, max: number, id = leaseId()): Promise<ClaimReply> {
  return queue.claim({ leaseId: id, max, waitMs: 0 });
}

/** Claims once and answers the deliveries. */
export async function take(queue: BrokerQueue, max = 100, id = leaseId()): Promise<readonly Delivery[]> {
  return (await claim(queue, max, id)).deliveries;
}

/** Claims until nothing comes, acks everything, answers the deliveries. */
export async function drain(queue: BrokerQueue): Promise<Delivery[]> {
  const all: Delivery[] = [];
  for (;;) {
    const deliveries = await take(queue, 100);
    if (deliveries.length === 0) return all;
    await settle(queue, deliveries, { kind: "ack" });
    all.push(...deliveries);
  }
}

export function settle(
  queue: BrokerQueue,
  deliveries: readonly Delivery[],
  verdict: Verdict,
): Promise<readonly SettleResult[]> {
  return queue.settle(deliveries.map((delivery): Settlement => ({ delivery, verdict })));
}

/** The ids of deliveries, results of an enqueue, or peeked jobs, in order. */
export function ids(list: readonly { readonly id: string }[]): string[] {
  return list.map((one) => one.id);
}

/** A body's bytes. */
export function bytes(body: RawBody): Uint8Array {
  return typeof body === "string" ? new TextEncoder().encode(body) : new Uint8Array(body);
}

export const ACK: Verdict = { kind: "ack" };
export const RELEASE: Verdict = { kind: "release" };
export const RETRY: Verdict = { kind: "retry", delayMs: 0 };
export const DEAD: Verdict = { kind: "dead", error: "it cannot be done" };
