/**
 * Chaos on the real engines, in a bounded form: producers, workers and the server killed, frozen and restarted, with faults of the network, all at once. The same as
 * `npm run chaos`, which runs as long as it is told to.
 */
import { expect, test } from "bun:test";
import { ADAPTERS } from "./engines.ts";
import type { Note, Word } from "./notes.ts";
import { broken, table } from "./report.ts";
import { runChaos } from "./run.ts";
import { judge } from "./verdict.ts";

for (const adapter of ADAPTERS) {
  test(`${adapter}: nothing accepted is lost, and poison alone ends as a dead letter`, async () => {
    const report = await runChaos({ adapter, seconds: 12, seed: 26 });
    console.log(table([report]));
    expect(broken(report)).toEqual([]);
    expect(report.kills).toBeGreaterThan(0);
  }, 150_000);
}

const VANISHED = "The worker vanished while it held attempt 3 of 3; no attempt is left";

function noted(...lines: readonly (readonly [Word, string, number])[]): Note[] {
  return lines.map(([word, id, atMs]) => ({ word, id, atMs, attempt: 0 }));
}

test("the judge finds what is lost, wrongly dead, repeated and begun after its ack", () => {
  const findings = judge({
    notes: noted(
      ["accepted", "good", 1],
      ["accepted", "gone", 1],
      ["accepted", "twice", 1],
      ["acceptedPoison", "bad", 1],
      ["acceptedPoison", "missing", 1],
      ["start", "good", 2],
      ["end", "good", 10],
      ["start", "twice", 11],
      ["end", "twice", 12],
      ["ack", "twice", 13],
      ["start", "twice", 500],
      ["end", "twice", 510],
      ["start", "bad", 20],
      ["start", "bad", 30],
      // Its enqueue was never answered: it may be there or not.
      ["end", "unheard", 600],
    ),
    deadWork: [{ id: "honest", error: VANISHED }],
    deadPoison: [
      { id: "bad", error: VANISHED },
      { id: "odd", error: "because" },
    ],
    calmAtMs: 550,
    drainedAtMs: 700,
    countsExactly: true,
  });
  expect(findings).toEqual({
    jobs: 5,
    poison: 2,
    lost: ["gone"],
    untrue: [`honest: ${VANISHED}`, "missing: no dead letter", "odd: because"],
    poisonStarts: 2,
    repeats: 1,
    afterAck: ["twice"],
    longestGapMs: 470,
    gapAfterMs: 100,
  });
});
