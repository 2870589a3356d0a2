/**
 * Puts an adapter through the conformance suite as bun tests.
 *
 * @module
 */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  applies,
  checkDeclared,
  type EngineUnderTest,
  type Harness,
  runCase,
} from "../support/conformance.ts";
import { cases } from "./cases.ts";

/** How long one case may take, in milliseconds: well above what waiting for real leases needs. */
const CASE_TIMEOUT_MS = 30_000;

/**
 * Registers every case that applies to the adapter, one test that its broker declares just the capabilities which the
 * harness does not list as lacking, and one that exactly `expected` cases ran. So a capability gone missing, or a case
 * that was skipped, fails. `through` tells several ways of reaching the same adapter's engine apart.
 */
export function conformance(harness: Harness, expected: number, through?: string): void {
  describe(`conformance: ${harness.name}${through === undefined ? "" : ` through ${through}`}`, () => {
    let engine: EngineUnderTest | undefined;
    let ran = 0;

    beforeAll(async () => {
      engine = await harness.start();
    });
    afterAll(async () => {
      await engine?.stop();
    });

    const running = () => {
      if (engine === undefined) throw new Error("the engine did not start");
      return engine;
    };

    test("declares what it has, and no more", async () => {
      const broker = running().connect();
      checkDeclared(cases, harness, broker);
      await broker.close();
    });

    for (const one of cases.filter((each) => applies(each, harness))) {
      test(
        one.name,
        async () => {
          await runCase(one, harness, running());
          ran += 1;
        },
        CASE_TIMEOUT_MS,
      );
    }

    test(`exactly ${expected} of ${cases.length} cases ran`, () => {
      expect(ran).toBe(expected);
      expect(new Set(cases.map((one) => one.name)).size).toBe(cases.length);
    });
  });
}
