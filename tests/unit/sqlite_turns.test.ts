/** Several connections on one file, and whose turn it is. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Crowd } from "../../adapters/sqlite/crowd.ts";
import { Turns } from "../../adapters/sqlite/turns.ts";
import { BrokerError } from "../../src/errors.ts";
import { claim, ids, put, take } from "../support/conformance_steps.ts";
import { Scratch } from "../support/sqlite_scratch.ts";

describe("while another connection has the database", () => {
  let scratch: Scratch;
  let blocker: Database;
  beforeEach(() => {
    scratch = new Scratch();
  });
  afterEach(async () => {
    blocker.close();
    await scratch.remove();
  });

  function block(): void {
    blocker = new Database(scratch.file);
    blocker.run("BEGIN IMMEDIATE");
  }

  test("the process goes on, and what waited is done once it is free, in the order it was asked for", async () => {
    const queue = await scratch.queue(scratch.database({ busyTimeoutMs: 60_000 }));
    block();
    const answered: string[] = [];
    const puts = ["a", "b", "c"].map((id) => put(queue, id).then(() => answered.push(id)));
    // A timer's turn, which the process would not have while SQLite waits.
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(answered).toEqual([]);
    blocker.run("ROLLBACK");
    puts.push(put(queue, "d").then(() => answered.push("d")));
    await Promise.all(puts);
    expect(answered).toEqual(["a", "b", "c", "d"]);
    expect(ids(await take(queue))).toEqual(["a", "b", "c", "d"]);
  });

  test("those that only read do not wait", async () => {
    const queue = await scratch.queue(scratch.database({ busyTimeoutMs: 60_000 }));
    await put(queue, "a");
    block();
    expect(await queue.sizes!()).toMatchObject({ ready: 1 });
  });

  test("each that waits has its own time, and fails when it is up", async () => {
    const queue = await scratch.queue(scratch.database({ busyTimeoutMs: 30 }));
    block();
    for (const result of await Promise.allSettled([claim(queue, 1), claim(queue, 1)])) {
      expect(result.status).toBe("rejected");
      const { reason } = result as PromiseRejectedResult;
      expect(reason).toBeInstanceOf(BrokerError);
      expect(reason.message).toContain("another process holds the database");
    }
  });

  test("who has to wait right after it wrote counts itself in, and others that waited lately", async () => {
    const queue = await scratch.queue(scratch.database({ busyTimeoutMs: 60_000 }));
    block();
    blocker.run("INSERT INTO eddy_crowd (connection, at) VALUES ('gone', 0), ('here', ?)", [
      Date.now() + 60_000,
    ]);
    blocker.run("COMMIT");
    await put(queue, "a");
    const crowd = () => blocker.query("SELECT connection FROM eddy_crowd").values().flat();
    expect(crowd()).toEqual(["gone", "here"]);
    // The machine may take its time between the two: then it is tried again.
    while (crowd().includes("gone")) {
      blocker.run("UPDATE eddy_crowd SET at = ? WHERE connection = 'here'", [Date.now()]);
      await put(queue, "b");
      blocker.run("BEGIN IMMEDIATE");
      const waiting = put(queue, "c");
      blocker.run("ROLLBACK");
      await waiting;
    }
    expect(crowd()).toContain("here");
    expect(crowd()).toHaveLength(2);
  });

  test("a crowd that cannot be counted fails no verb", async () => {
    let counts = 0;
    const database = scratch.database({ busyTimeoutMs: 60_000 }, (driver) => {
      const { prepare } = driver;
      driver.prepare = (sql) => {
        const statement = prepare.call(driver, sql);
        if (!sql.includes("INTO eddy_crowd")) return statement;
        return {
          ...statement,
          run() {
            counts += 1;
            throw new Error("on purpose");
          },
        };
      };
    });
    const queue = await scratch.queue(database);
    blocker = new Database(scratch.file);
    let jobs = 0;
    // The machine may take its time between the two: then it is tried again.
    while (counts === 0) {
      await put(queue, `a${jobs}`);
      blocker.run("BEGIN IMMEDIATE");
      const waiting = put(queue, `b${jobs}`);
      blocker.run("ROLLBACK");
      await waiting;
      jobs += 1;
    }
    expect(await queue.sizes!()).toMatchObject({ ready: 2 * jobs });
  });

  test("a broker that is closed meanwhile says so", async () => {
    const broker = scratch.broker(scratch.database({ busyTimeoutMs: 60_000 }));
    const queue = broker.queue("work", { leaseMs: 30_000, requestTimeoutMs: 5000, dedupeWindowMs: 60_000 });
    await queue.open();
    block();
    const waiting = put(queue, "a");
    await broker.close();
    expect(waiting).rejects.toThrow("the broker is closed");
    await waiting.catch(() => {});
  });
});

describe("turns", () => {
  const BUSY = new Error("busy");
  let commits = 0;
  let crowd: Crowd;
  beforeEach(() => {
    crowd = new Crowd();
  });

  function turns(busyTimeoutMs = 60_000): Turns {
    return new Turns({
      busyTimeoutMs,
      otherCommits: () => commits,
      isBusy: (error) => error === BUSY,
      crowd,
    });
  }

  /** Writes for longer than a turn may last. */
  function write(): void {
    const until = performance.now() + 25;
    while (performance.now() < until);
  }

  /** Whether a transaction is run before the call returns. */
  function isAtOnce(all: Turns): boolean {
    let ran = false;
    void all.take(() => {
      ran = true;
    });
    return ran;
  }

  test("who is alone never steps back", async () => {
    const all = turns();
    for (let i = 0; i < 3; i += 1) {
      await all.take(write);
      expect(isAtOnce(all)).toBe(true);
    }
  });

  test("who wrote for a turn steps back for others who committed", async () => {
    const all = turns();
    commits += 1;
    await all.take(write);
    expect(isAtOnce(all)).toBe(false);
  });

  test("who had to wait knows of others, too", async () => {
    const all = turns();
    let isFirst = true;
    await all.take(() => {
      if (isFirst) {
        isFirst = false;
        throw BUSY;
      }
      write();
    });
    expect(isAtOnce(all)).toBe(false);
  });

  test("a transaction counts as done even when others cannot be looked for", async () => {
    const all = new Turns({
      busyTimeoutMs: 0,
      otherCommits: () => {
        throw new Error("on purpose");
      },
      isBusy: () => true,
      crowd,
    });
    await all.take(write);
    expect(isAtOnce(all)).toBe(true);
  });

  test("the time of one in a long line of its own begins when the one before it is through", async () => {
    const all = turns(500);
    let ahead = 0;
    const first = all.take(() => {
      ahead += 1;
      if (ahead === 1) throw BUSY;
      const until = performance.now() + 600;
      while (performance.now() < until);
    });
    let behind = 0;
    const second = all.take(() => {
      behind += 1;
      if (behind === 1) throw BUSY;
      return "through";
    });
    await first;
    expect(await second).toBe("through");
  });

  test("any other error ends the wait, and the next one has its turn", async () => {
    const all = turns();
    let tries = 0;
    const failing = all.take(() => {
      tries += 1;
      throw tries === 1 ? BUSY : new Error("on purpose");
    });
    const next = all.take(() => "next");
    expect(failing).rejects.toThrow("on purpose");
    expect(await next).toBe("next");
    expect(tries).toBe(2);
  });

  /** Takes a transaction that is in others' way for so many milliseconds; answers how often it was tried. */
  async function tries(all: Turns, busyMs: number): Promise<number> {
    const freeAt = performance.now() + busyMs;
    let count = 0;
    await all.take(() => {
      count += 1;
      if (performance.now() < freeAt) throw BUSY;
      crowd.countAt(performance.now(), () => 64);
    });
    return count;
  }

  test("who waits for long is one of a crowd, and looks the more seldom then, the more they are", async () => {
    const all = turns();
    await all.take(() => {});
    // Longer than between two transactions of a turn.
    await new Promise((resolve) => setTimeout(resolve, 5));
    await tries(all, 300);
    expect(crowd.sizeAt(performance.now())).toBe(64);
    expect(await tries(all, 200)).toBeLessThan(10);
  });

  test("who has not wanted the database for long before is none of the crowd", async () => {
    const all = turns();
    await tries(all, 60);
    expect(crowd.sizeAt(performance.now())).toBe(1);
  });

  test("in a crowd, too, it gives up when the time is up", async () => {
    const all = turns(20);
    crowd.join();
    crowd.countAt(performance.now(), () => 64);
    const failing = all
      .take(() => {
        throw BUSY;
      })
      .catch((error: unknown) => error);
    // The next look would be later still.
    const late = new Promise((resolve) => setTimeout(() => resolve("late"), 50));
    expect(await Promise.race([failing, late])).toBe(BUSY);
  });
});
