/**
 * What a chaos run's report breaks of the promises, and how it is printed. No I/O.
 *
 * @module
 */
import { tally } from "./causes.ts";
import type { ChaosReport } from "./run.ts";
import { POISON_ATTEMPTS } from "./settings.ts";

/** Says what was promised and did not hold, a line each; none when all did. */
export function broken(report: ChaosReport): string[] {
  const { lost, untrue, crashes, afterAck, jobs, drainedMs, keepsAcks, poisonStarts, ackedTwice, runsAgain } =
    report;
  const some = (ids: readonly string[]) => ids.slice(0, 10).join(", ");
  const lines: string[] = [];
  if (jobs === 0) lines.push("no job was accepted");
  if (lost.length > 0) lines.push(`${lost.length} jobs lost: ${some(lost)}`);
  for (const one of untrue.slice(0, 10)) lines.push(`wrong dead letter: ${one}`);
  for (const one of crashes) lines.push(`crash: ${one}`);
  if (drainedMs === undefined) lines.push("jobs were left when the time to drain was over");
  if (keepsAcks && afterAck.length > 0) {
    lines.push(`${afterAck.length} jobs began after their ack was confirmed: ${some(afterAck)}`);
  }
  if (keepsAcks && ackedTwice.length > 0) lines.push(`acks confirmed to two processes: ${some(ackedTwice)}`);
  for (const { id, holder, fromMs, againMs, cause, trail } of runsAgain) {
    if (cause !== undefined) continue;
    lines.push(
      `${id} ran again for no reason that is known, ${againMs - fromMs} ms after ${holder} began it`,
      ...trail.map((step) => `  ${step}`),
    );
  }
  // Where acks are forgotten, so are counts.
  if (keepsAcks && poisonStarts > POISON_ATTEMPTS) lines.push(`poison began ${poisonStarts} times`);
  return lines;
}

/** The last line: whether all that was promised held. */
export function ending(lines: readonly string[]): string {
  return lines.length === 0 ? "PASS: every promise was kept" : "FAIL: a promise was broken, as said above";
}

const SECOND_MS = 1_000;

/** A table in Markdown, a row a report. Gaps in seconds. */
export function table(reports: readonly ChaosReport[]): string {
  const seconds = (ms: number | undefined) => (ms === undefined ? "never" : (ms / SECOND_MS).toFixed(1));
  const columns: readonly (readonly [string, (report: ChaosReport) => string | number])[] = [
    ["adapter", (one) => one.adapter],
    ["jobs", (one) => one.jobs],
    ["poison", (one) => one.poison],
    ["kills", (one) => one.kills],
    ["freezes", (one) => one.freezes],
    ["restarts", (one) => one.restarts],
    ["server freezes", (one) => one.serverFreezes],
    ["network faults", (one) => one.faults],
    ["lost", (one) => one.lost.length],
    ["repeats", (one) => one.repeats],
    ["unexplained", (one) => one.runsAgain.filter(({ cause }) => cause === undefined).length],
    ["after a confirmed ack", (one) => one.afterAck.length],
    ["finished, yet kept", (one) => one.keptFinished],
    ["longest gap s", (one) => seconds(one.longestGapMs)],
    ["after faults s", (one) => seconds(one.gapAfterMs)],
    ["drained in s", (one) => seconds(one.drainedMs)],
  ];
  const row = (cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;
  return [
    row(columns.map(([name]) => name)),
    row(columns.map(() => "---")),
    ...reports.map((report) => row(columns.map(([, cell]) => cell(report)))),
  ].join("\n");
}

/** Why jobs ran again, a line an adapter. */
export function reasons(reports: readonly ChaosReport[]): string {
  return reports
    .map(({ adapter, runsAgain }) => {
      const told = tally(runsAgain).map(([cause, count]) => `${count} × ${cause}`);
      return `${adapter}: ${runsAgain.length} runs again: ${told.join("; ") || "none"}`;
    })
    .join("\n");
}
