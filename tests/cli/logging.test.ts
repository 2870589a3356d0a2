/** What a worker's log says: one line for each entry, sums for what goes well, no flood when the broker fails. */
import { describe, expect, test } from "bun:test";
import { EventLog } from "../../runtimes/cli/event_log.ts";
import { printingLog } from "../../runtimes/cli/log.ts";
import { SimulatedPlatform } from "../../runtimes/simulated.ts";
import { BrokerRefusedError, type EddyEvent, type LogLevel } from "../../src/mod.ts";

function printed(json: boolean, least: LogLevel = "info") {
  const lines: string[] = [];
  const log = printingLog({ json, least, print: (line) => lines.push(line), wallNow: () => 0 });
  return { lines, log };
}

describe("lines", () => {
  test("are readable, one for each entry, whatever the texts hold", () => {
    const { lines, log } = printed(false);
    log("info", "Sent", { queue: "q", n: 1, text: 'a "b"', none: undefined, list: [1], big: 2n });
    log("warn", "two\nlines\u001b[2J", { text: "x\ry", error: new TypeError("no") });
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    log("error", "odd", { cycle, fn: () => 1 });
    log("debug", "left out", {});
    expect(lines).toEqual([
      '1970-01-01T00:00:00.000Z INFO  Sent queue=q n=1 text="a \\"b\\"" list=[1] big="2"',
      '1970-01-01T00:00:00.000Z WARN  two\\nlines\\x1b[2J text="x\\ry" error="TypeError: no"',
      expect.stringMatching(/^1970-01-01T00:00:00.000Z ERROR odd cycle=\(object\) fn=/),
    ]);
    for (const line of lines) expect(line).not.toContain("\n");
  });

  test("are JSON where asked for, a field never in the place of time, level and message", () => {
    const { lines, log } = printed(true, "debug");
    log("debug", "m\n", { level: "hush", time: 1, queue: "q", big: 2n });
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    log("info", "odd", { cycle });
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { time: "1970-01-01T00:00:00.000Z", level: "debug", message: "m\n", queue: "q", big: "2" },
      { time: "1970-01-01T00:00:00.000Z", level: "info", message: "odd", fields: "could not be written" },
    ]);
  });
});

describe("events", () => {
  function listening() {
    const platform = new SimulatedPlatform();
    const lines: [LogLevel, string, Record<string, unknown>][] = [];
    const events = new EventLog(platform, (level, message, fields) => {
      if (level !== "debug") lines.push([level, message, fields]);
    });
    return { platform, lines, events, tell: events.listener };
  }

  const settled = (verdict: "ack" | "dead"): EddyEvent => ({
    type: "settled",
    queue: "q",
    jobId: "j",
    leaseId: "l",
    verdict,
  });
  const failed: EddyEvent = {
    type: "brokerError",
    queue: "q",
    verb: "claim",
    error: new Error("refused"),
    retryInMs: 12.7,
  };
  const claimed: EddyEvent = { type: "claimed", queue: "q", leaseId: "l", asked: 1, got: 1, tookMs: 1 };

  const brought = (asked: number, got: number): EddyEvent => ({ ...claimed, asked, got }) as EddyEvent;

  test("what goes well is told as sums: every five seconds, when no job is ready any more, and at the end", async () => {
    const { platform, lines, events, tell } = listening();
    tell(brought(1_001, 1_001));
    for (let n = 0; n < 1_000; n += 1) tell(settled("ack"));
    tell(settled("dead"));
    await platform.pass(4_999);
    expect(lines).toEqual([]);
    await platform.pass(1);
    expect(lines.splice(0)).toEqual([["info", "Working", { queue: "q", acked: 1_000, dead: 1 }]]);
    tell(brought(1, 1));
    tell(settled("ack"));
    expect(lines).toEqual([]);
    tell(brought(1, 0));
    tell({ type: "idle", queue: "q", nextLookMs: 50 });
    tell(brought(1, 0));
    expect(lines.splice(0)).toEqual([["info", "No job is ready any more", { queue: "q", acked: 1 }]]);
    tell(brought(1, 1));
    tell(settled("ack"));
    tell({ type: "stopped" });
    events.close();
    expect(lines.splice(0)).toEqual([
      ["info", "Done", { queue: "q", acked: 1 }],
      ["info", "Stopped", {}],
    ]);
    expect(platform.timers).toBe(0);
  });

  test("that no job is ready is told with the last verdict of a short claim, not with the next look", () => {
    const { lines, tell } = listening();
    tell(brought(16, 2));
    tell(settled("ack"));
    expect(lines).toEqual([]);
    tell(settled("ack"));
    expect(lines.splice(0)).toEqual([["info", "No job is ready any more", { queue: "q", acked: 2 }]]);
    // What is lost is held no longer, and was not settled.
    tell(brought(16, 1));
    tell({ type: "lost", queue: "q", jobId: "j", leaseId: "l", started: true });
    expect(lines.map(([, message]) => message)).toEqual(["The lease is over; the job will run again"]);
  });

  test("a queue that gets a job now and then has no line for each", async () => {
    const { platform, lines, events, tell } = listening();
    for (let n = 0; n < 60; n += 1) {
      tell(brought(1, 1));
      tell(settled("ack"));
      tell(brought(1, 0));
      await platform.pass(1_000);
    }
    // At once, then every half a minute.
    expect(lines.map(([, message, { acked }]) => [message, acked])).toEqual([
      ["No job is ready any more", 1],
      ["No job is ready any more", 29],
      ["No job is ready any more", 30],
    ]);
    events.close();
    expect(platform.timers).toBe(0);
  });

  test("a process that is ended at once tells how many jobs stay held", () => {
    const { events, tell } = listening();
    expect(events.heldBehind()).toBe("Ended at once: no job is known to be held");
    tell(brought(3, 3));
    tell({ ...claimed, queue: "r", got: 1 } as EddyEvent);
    expect(events.heldBehind()).toBe(
      "Ended at once: 4 jobs stay held until their lease ends, and then run again",
    );
    for (let n = 0; n < 3; n += 1) tell(settled("ack"));
    expect(events.heldBehind()).toBe(
      "Ended at once: 1 job stays held until its lease ends, and then runs again",
    );
  });

  test("a refusal is told once, whichever queue and verb came upon it, and not as what is tried again", () => {
    const { lines, events, tell } = listening();
    const error = new BrokerRefusedError("sqlite", "watch", "its file is gone");
    expect(events.toldRefusal).toBe(false);
    for (const queue of ["q", "r", "s"]) {
      tell({ ...failed, queue, error } as EddyEvent);
      tell({ type: "refused", queue, error: new BrokerRefusedError("sqlite", "claim", error.message) });
    }
    expect(lines).toEqual([["error", "The broker is refused", { queue: "q", error: "its file is gone" }]]);
    expect(events.toldRefusal).toBe(true);
  });

  test("a failing broker is told at once, then every five seconds with how often, and its return once", async () => {
    const { platform, lines, tell } = listening();
    for (let n = 0; n < 100; n += 1) {
      tell(failed);
      await platform.pass(100);
    }
    tell(claimed);
    tell(claimed);
    const told = { queue: "q", verb: "claim", error: "refused", retryInMs: 13 };
    expect(lines).toEqual([
      ["warn", "The broker failed; trying again", told],
      ["warn", "The broker failed; trying again", { ...told, failuresUntold: 49 }],
      ["info", "The broker answers again", { queue: "q" }],
    ]);
  });

  test("one that flaps does not fill the log", async () => {
    const { platform, lines, tell } = listening();
    for (let n = 0; n < 500; n += 1) {
      tell(failed);
      tell(claimed);
      await platform.pass(20);
    }
    expect(lines.length).toBeLessThanOrEqual(4);
  });

  test("a stop tells how many jobs still run and how long they get", () => {
    const { lines, tell } = listening();
    tell({ type: "stopping", reason: "SIGINT", running: 2, graceMs: 4_999.6 });
    expect(lines).toEqual([
      [
        "info",
        "Stopping: running jobs may finish, nothing starts",
        { running: 2, graceMs: 5_000, reason: "SIGINT" },
      ],
    ]);
  });

  test("what went wrong with a job is told with its reason", () => {
    const { lines, tell } = listening();
    const job = { queue: "q", jobId: "j", leaseId: "l" };
    tell({ type: "finished", ...job, attempt: 1, verdict: "retry", ranMs: 3.4, error: "timeout" });
    tell({ type: "finished", ...job, attempt: 2, verdict: "dead", ranMs: 3.6, error: "timeout" });
    tell({ type: "finished", ...job, attempt: 2, verdict: "ack", ranMs: 3 });
    tell({ type: "finished", ...job, attempt: 1, verdict: "retry", ranMs: 3, asked: true, error: "later" });
    tell({ type: "finished", ...job, attempt: 1, verdict: "retry", ranMs: 3, asked: true });
    tell({ type: "lost", ...job, started: true });
    tell({ type: "abandoned", queue: "q", jobId: "j" });
    tell({ type: "lastChance", queue: "q", jobId: "j" });
    tell({ type: "refused", queue: "q", error: new Error("evicts") });
    expect(lines.map(([level, message]) => [level, message])).toEqual([
      ["warn", "The job failed and will be tried again"],
      ["error", "The job is now a dead letter"],
      ["info", "The handler asked for another try"],
      ["info", "The handler asked for another try"],
      ["warn", "The lease is over; the job will run again"],
      ["warn", "A handler ignored its signal and was left behind"],
      ["warn", "A job whose earlier holder vanished gets its last attempt, by itself"],
      ["error", "The broker is refused"],
    ]);
    expect(lines[0]![2]).toEqual({ queue: "q", job: "j", attempt: 1, ms: 3, error: "timeout" });
    expect(lines.slice(2, 4).map(([, , fields]) => fields.reason)).toEqual(["later", undefined]);
  });
});
