/** What is remembered of leases that are over. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Lease, Leases } from "../../adapters/nats/leases.ts";
import { RememberedLeases } from "../../adapters/remembered_leases.ts";
import { LeaseIds } from "../../src/lease_ids.ts";

const KEEP_MS = 1_000;
const COMMON = "as most";

/** Ids of loops that count, of which one's begin as another's do, some that nearly count, and some that do not. */
const id = fc
  .oneof(
    {
      weight: 4,
      arbitrary: fc.tuple(
        fc.constantFrom("a", "b.c", "b"),
        fc.oneof(fc.nat({ max: 4 }), fc.nat({ max: 4_000 })),
      ),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom("a.", "a", ".1", "a.01", "a.A", "a.zzzzzzzzzz", "a.-1", "b.c.", "plain"),
    },
  )
  .map((made) => (typeof made === "string" ? made : `${made[0]}.${made[1].toString(36)}`));

const step = fc.record({
  id,
  end: fc.option(fc.constantFrom(COMMON, "all", "some"), { nil: undefined }),
  passMs: fc.oneof(fc.constant(0), fc.nat({ max: 200 }), fc.nat({ max: 2 * KEEP_MS })),
});

test("an end is told as it was said, for as long as it is kept at least, and by an id of its own", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
      const ended = new RememberedLeases<string>(KEEP_MS, COMMON);
      const said = new Map<string, { readonly end: string; readonly at: number }>();
      let now = 0;
      for (const { id, end, passMs } of steps) {
        now += passMs;
        if (end !== undefined) {
          ended.set(id, end, now);
          said.set(id, { end, at: now });
        }
        if (!said.has(id)) expect(ended.get(id, now)).toBeUndefined();
        for (const [one, known] of said) {
          const told = ended.get(one, now);
          // It may be forgotten when its time is over; told wrongly never.
          if (told !== undefined || now - known.at < KEEP_MS) expect(told).toBe(known.end);
        }
      }
    }),
  );
});

test("what is said last counts, and not what was said before and is kept longer", () => {
  const ended = new RememberedLeases<string>(KEEP_MS, COMMON);
  ended.set("a.1", "all", 0);
  ended.set("a.1", COMMON, 0);
  for (const now of [KEEP_MS + 1, 2 * KEEP_MS - 1, 3 * KEEP_MS]) {
    ended.set("a.2", COMMON, now);
    expect(ended.get("a.1", now)).not.toBe("all");
  }
});

test("an id is plainly new once, and never one that was seen or is over", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
      const ended = new RememberedLeases<string>(KEEP_MS, COMMON);
      const seen = new Map<string, number>();
      let now = 0;
      for (const { id, end, passMs } of steps) {
        now += passMs;
        const isNew = ended.saw(id);
        if (isNew && now - (seen.get(id) ?? Number.NEGATIVE_INFINITY) < KEEP_MS)
          throw new Error(`${id} was seen before`);
        // What ends here was seen; what was only seen is held, or about to be, and asked about as such.
        if (end !== undefined) {
          ended.set(id, end, now);
          seen.set(id, now);
        }
      }
    }),
  );
});

test("the ids of a worker's loop are told apart from those that came before without a look", () => {
  const ended = new RememberedLeases<string>(KEEP_MS, COMMON);
  const ids = new LeaseIds("worker");
  for (let n = 0; n < 5_000; n++) {
    const id = ids.next();
    expect(ended.saw(id)).toBe(true);
    expect(ended.saw(id)).toBe(false);
    ended.set(id, COMMON, 0);
  }
});

test("a loop of which a lease is held is not forgotten, however long nothing of it ended", () => {
  let held = true;
  const ended = new RememberedLeases<string>(KEEP_MS, COMMON, (prefix) => held && prefix === "a.");
  expect(ended.saw("a.5")).toBe(true);
  for (let now = 0; now < 10 * KEEP_MS; now += KEEP_MS / 2) ended.set(`b.${now.toString(36)}`, COMMON, now);
  expect(ended.saw("a.5")).toBe(false);
  held = false;
  ended.set("b.zzz", COMMON, 20 * KEEP_MS);
  expect(ended.saw("a.5")).toBe(true);
});

test("a lease whose claim was under way while its loop was forgotten is known when it is held", () => {
  const leases = new Leases();
  const hold = (id: string) => leases.add(new Lease(id, Number.POSITIVE_INFINITY), 0);
  hold("a.1");
  expect(leases.begin("a.2")).toBe(true);
  // The first end there is looks through all series.
  leases.end(leases.get("a.1", 0) as Lease, 0);
  hold("a.2");
  expect(leases.begin("a.2")).toBe(false);
});

test("what is kept of short jobs does not grow with them", () => {
  const ended = new RememberedLeases<string>(KEEP_MS, COMMON);
  const ids = new LeaseIds("worker");
  const before = process.memoryUsage().heapUsed;
  for (let n = 0; n < 300_000; n++) ended.set(ids.next(), COMMON, 0);
  Bun.gc(true);
  // A map's entries for them would take thirty megabytes.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(3_000_000);
});
