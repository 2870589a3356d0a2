/**
 * Random steps for putting two brokers side by side.
 *
 * @module
 */

import fc from "fast-check";
import type { NewJob, Verdict } from "../../src/broker.ts";

/** A step, its choices as numbers that are taken modulo what there is. */
export type Step =
  | { do: "enqueue"; request: number; jobs: NewJob[] }
  | { do: "claim"; over: number; lease: number; max: number; recall: boolean }
  | { do: "settle"; over: number; settle: Choice[] }
  | { do: "renew"; over: number; leases: number[] }
  | { do: "exchange"; over: number; settle: Choice[]; renew: number[]; max: number; memo: string | undefined }
  | { do: "abandon"; leases: number[] }
  | { do: "pass"; ms: number }
  | { do: "sizes" }
  | { do: "peek"; state: "ready" | "delayed" | "held" | "dead"; limit: number }
  | { do: "clear"; states: ("ready" | "delayed" | "dead")[] }
  | { do: "redrive"; ids: string[] | undefined; limit: number }
  | { do: "pause" | "resume" };

export interface Choice {
  delivery: number;
  verdict: Verdict;
}

const few = fc.nat({ max: 9 });
const verdict: fc.Arbitrary<Verdict> = fc.oneof(
  fc.constant<Verdict>({ kind: "ack" }),
  fc.constant<Verdict>({ kind: "release" }),
  fc.constant<Verdict>({ kind: "retry", delayMs: 0 }),
  fc.nat({ max: 300 }).map((delayMs): Verdict => ({ kind: "retry", delayMs, error: "again" })),
  fc.constant<Verdict>({ kind: "dead", error: "no\nmore" }),
);
const picks = fc.array(fc.record({ delivery: fc.nat({ max: 40 }), verdict }), { maxLength: 6 });
const job: fc.Arbitrary<NewJob> = fc.record({
  id: fc.constantFrom("a", "b", "c", "d", "e"),
  body: fc.oneof(fc.string({ maxLength: 5 }), fc.constant("\u0000")),
  headers: fc.constantFrom({}, { kind: "x" }),
  priority: fc.constantFrom("high", "normal", "low"),
  delayMs: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat({ max: 400 })),
  dedupe: fc.boolean(),
});

/** Any step at all, common ones more often. */
export const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("enqueue"),
      request: fc.nat({ max: 30 }),
      jobs: fc.array(job, { maxLength: 12 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("claim"),
      over: few,
      lease: fc.nat({ max: 60 }),
      max: fc.integer({ min: 1, max: 12 }),
      recall: fc.boolean(),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("settle"), over: few, settle: picks }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("renew"), over: few, leases: fc.array(few) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("exchange"),
      over: few,
      settle: picks,
      renew: fc.array(few, { maxLength: 3 }),
      max: fc.integer({ min: 0, max: 12 }),
      memo: fc.option(fc.string({ unit: fc.constantFrom("a", "|", " "), maxLength: 4 }), { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("abandon"), leases: fc.array(few) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("pass"), ms: fc.nat({ max: 350 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("sizes") }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("peek"),
      state: fc.constantFrom("ready", "delayed", "held", "dead"),
      limit: fc.nat({ max: 20 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("clear"),
      states: fc.subarray<"ready" | "delayed" | "dead">(["ready", "delayed", "dead"]),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("redrive"),
      ids: fc.option(fc.subarray(["a", "b", "c", "d", "e"]), { nil: undefined }),
      limit: fc.nat({ max: 6 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("pause", "resume", "resume") }) },
) as fc.Arbitrary<Step>;
