/**
 * Names of leases.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { isJobId } from "../../src/broker.ts";
import { LeaseIds } from "../../src/lease_ids.ts";

test("a loop's lease ids are all different, none is another loop's, and every engine takes them", () => {
  const loops = [new LeaseIds("a-1"), new LeaseIds("a-11"), new LeaseIds(crypto.randomUUID())];
  const ids = loops.flatMap((loop) => Array.from({ length: 5_000 }, () => loop.next()));
  expect(new Set(ids).size).toBe(15_000);
  expect(ids.every(isJobId)).toBe(true);
});
