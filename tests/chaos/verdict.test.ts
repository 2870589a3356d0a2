/** What judges a chaos run: it finds what is broken, and takes nothing for a cause that is none. */
import { expect, test } from "bun:test";
import { type CauseAccount, ENQUEUED_AGAIN, explain, FORGOTTEN, TWOFOLD, tally } from "./causes.ts";
import type { Note, Word } from "./notes.ts";
import { FROZEN, KILLED, STALLED, STOPPED, type Trouble } from "./troubles.ts";
import { judge } from "./verdict.ts";

const VANISHED = "The worker vanished while it held attempt 3 of 3; no attempt is left";

type Line = readonly [word: Word, id: string, atMs: number, by?: string];

function noted(...lines: readonly Line[]): Note[] {
  return lines.map(([word, id, atMs, by = "w1.1"]) => ({ word, id, atMs, attempt: 0, by }));
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
      ["start", "twice", 500, "w2.1"],
      ["end", "twice", 510, "w2.1"],
      ["ack", "twice", 511, "w2.1"],
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
    ackedTwice: ["twice"],
    longestGapMs: 470,
    longestGapFromMs: 30,
    gapAfterMs: 100,
  });
});

/** A job that `w1.1` began at 10,000 and `w2.1` at 13,000, with what is said beside that; leases are of 2,000. */
function causeOf(
  troubles: readonly (readonly [kind: string, whom: string, fromMs: number, toMs?: number])[],
  notes: readonly Line[] = [["lost", "job", 12_500]],
  options: Partial<CauseAccount> = {},
): string | undefined {
  const repeats = explain({
    notes: noted(["start", "job", 10_000], ["start", "job", 13_000, "w2.1"], ...notes),
    troubles: troubles.map(([kind, whom, fromMs, toMs = fromMs]): Trouble => ({ kind, whom, fromMs, toMs })),
    isAsked: () => true,
    leaseMs: 2_000,
    sharesLock: false,
    forgetsMs: 0,
    movesByCopy: false,
    ...options,
  });
  expect(repeats).toHaveLength(1);
  return repeats[0]?.cause;
}

test("a repeat is explained by what was done to its holder while it held the job, and by nothing else", () => {
  expect(causeOf([])).toBeUndefined();
  expect(causeOf([[KILLED, "w1.1", 11_000]], [])).toBe("its holder was killed");
  expect(causeOf([[KILLED, "w1.1", 13_500]], [])).toBeUndefined();
  expect(causeOf([[KILLED, "w2.1", 11_000]])).toBeUndefined();
  expect(causeOf([[FROZEN, "w1.1", 9_000, 12_000]])).toBe("its holder stood still past its lease");
  expect(causeOf([[FROZEN, "w1.1", 5_000, 7_000]])).toBeUndefined();
  expect(causeOf([[FROZEN, "w2.1", 9_000, 12_000]])).toBeUndefined();
  expect(causeOf([[FROZEN, "p1.1", 9_000, 12_000]], undefined, { sharesLock: true })).toContain("lock");
  expect(causeOf([["stopped", "server", 11_000, 12_000]])).toBe("the server was stopped");
  expect(causeOf([["cut", "w1", 11_000]])).toBe("the network: cut");
  expect(causeOf([["cut", "w2", 11_000]])).toBeUndefined();
  expect(causeOf([[STALLED, "machine", 10_000, 12_000]])).toBe(STALLED);
});

test("a holder that lives, and never learned that its lease was lost, makes a repeat that nothing explains", () => {
  const everything = [
    [FROZEN, "w1.1", 9_000, 12_000],
    ["frozen", "server", 9_000, 12_000],
    ["cut", "w1", 11_000],
  ] as const;
  expect(causeOf(everything, [])).toBeUndefined();
  expect(causeOf([...everything, [KILLED, "w1.1", 14_000]], [])).toBe(
    "its holder stood still past its lease",
  );
});

test("who stood still before it began a job is its earlier holder, though it began later", () => {
  const notes = [
    { word: "start", id: "job", atMs: 10_000, attempt: 2, by: "w1.1" },
    { word: "ack", id: "job", atMs: 10_010, attempt: 0, by: "w1.1" },
    { word: "start", id: "job", atMs: 10_800, attempt: 1, by: "w2.1" },
    { word: "lost", id: "job", atMs: 10_801, attempt: 0, by: "w2.1" },
  ] as const;
  const causes = (attempt: number) =>
    explain({
      notes: notes.map((note) => (note.word === "start" && note.by === "w2.1" ? { ...note, attempt } : note)),
      troubles: [{ kind: FROZEN, whom: "w2.1", fromMs: 8_100, toMs: 10_790 }],
      isAsked: () => true,
      leaseMs: 2_000,
      sharesLock: false,
      forgetsMs: 0,
      movesByCopy: false,
    }).map(({ cause }) => cause);
  expect(causes(1)).toEqual(["its holder stood still past its lease"]);
  expect(causes(3)).toEqual([undefined]);
});

test("a run after a confirmed ack is explained only where the server was killed just then and forgets", () => {
  const unheard: readonly Line[] = [["ack", "job", 10_100]];
  const acked: readonly Line[] = [...unheard, ["accepted", "job", 9_000, "p1.1"]];
  const killed = [[KILLED, "server", 11_000, 11_500]] as const;
  expect(causeOf(killed, acked)).toBeUndefined();
  expect(causeOf(killed, acked, { forgetsMs: 2_000 })).toBe(FORGOTTEN);
  expect(causeOf(killed, acked, { forgetsMs: 500 })).toBeUndefined();
  expect(causeOf([[STOPPED, "server", 11_000]], acked, { forgetsMs: 2_000 })).toBeUndefined();
  expect(causeOf([[STOPPED, "server", 10_090, 11_000]], acked, { forgetsMs: 2_000 })).toBe(FORGOTTEN);
  expect(causeOf([[STOPPED, "server", 11_000]], unheard, { forgetsMs: 2_000 })).toBe(ENQUEUED_AGAIN);
  const unanswered: readonly Line[] = [...unheard, ["accepted", "job", 12_600, "p1.1"]];
  expect(causeOf([[STOPPED, "server", 12_400, 12_550]], unanswered, { forgetsMs: 2_000 })).toBe(
    ENQUEUED_AGAIN,
  );
  expect(causeOf([[STOPPED, "server", 12_700, 12_900]], unanswered, { forgetsMs: 2_000 })).toBeUndefined();
});

test("a run soon after a confirmed ack is of a copy, where moves make some and somebody was cut off", () => {
  const causes = (againMs: number, movesByCopy: boolean, killedMs: number) =>
    explain({
      notes: noted(
        ["start", "job", 10_000],
        ["ack", "job", 10_010],
        ["start", "job", againMs, "w2.1"],
        ["accepted", "job", 9_000, "p1.1"],
      ),
      troubles: [{ kind: KILLED, whom: "w3.1", fromMs: killedMs, toMs: killedMs }],
      isAsked: () => true,
      leaseMs: 2_000,
      sharesLock: false,
      forgetsMs: 0,
      movesByCopy,
    }).map(({ cause }) => cause);
  expect(causes(11_000, true, 9_900)).toEqual([TWOFOLD]);
  expect(causes(11_000, false, 9_900)).toEqual([undefined]);
  expect(causes(11_000, true, 10_100)).toEqual([undefined]);
  expect(causes(12_000, true, 9_900)).toEqual([undefined]);
});

test("causes are counted, the most frequent first, and those that are not known among them", () => {
  const one = { id: "job", holder: "w1.1", fromMs: 0, againMs: 1, trail: [] };
  expect(
    tally([
      { ...one, cause: "a" },
      { ...one, cause: undefined },
      { ...one, cause: "a" },
    ]),
  ).toEqual([
    ["a", 2],
    ["unexplained", 1],
  ]);
});
