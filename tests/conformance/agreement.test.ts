/**
 * Memory and SQLite side by side: whatever is asked of them, in whatever order, on the same clock, they give the same
 * answers. The two share no code but the checks of arguments, so each is the other's model.
 */

import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { MemoryBroker } from "../../adapters/memory.ts";
import { bunSqlite } from "../../adapters/sqlite/bun_driver.ts";
import { SqliteBroker } from "../../adapters/sqlite/mod.ts";
import type { BrokerQueue, ClaimReply, Delivery, QueueSettings, Settlement } from "../../src/broker.ts";
import { type Choice, type Step, step } from "../support/conformance_random.ts";

const folder = mkdtempSync(join(tmpdir(), "eddy-agreement-"));
afterAll(() => rmSync(folder, { recursive: true }));

const database = bunSqlite({ file: join(folder, "jobs.db"), synchronous: "normal" });
let serial = 0;

/** One of the two brokers: two connections with leases of different length, and every delivery it ever gave. */
class Side {
  readonly queues: readonly [BrokerQueue, BrokerQueue];
  readonly deliveries: Delivery[] = [];
  readonly #leases: { id: string; over: number }[] = [];
  #nextLease = 0;

  constructor(queues: readonly [BrokerQueue, BrokerQueue]) {
    this.queues = queues;
  }

  async run(one: Step): Promise<unknown> {
    const [queue] = this.queues;
    switch (one.do) {
      case "enqueue":
        return queue.enqueue(`request-${one.request}`, one.jobs);
      case "claim": {
        const lease = this.#lease(one.lease, one.over);
        const claim = { leaseId: lease.id, max: one.max, waitMs: 0, recall: one.recall };
        return this.#claimed(await this.#over(lease.over).claim(claim));
      }
      case "settle":
        return this.#over(one.over).settle(this.#settlements(one.settle));
      case "renew":
        return this.#over(one.over).renew(one.leases.map((lease) => this.#known(lease)));
      case "exchange": {
        const lease = this.#lease(60, one.over);
        const { claimed, ...rest } = await this.#over(lease.over).exchange!({
          settle: this.#settlements(one.settle),
          renew: one.renew.map((known) => this.#known(known)),
          claim: one.max === 0 ? undefined : { leaseId: lease.id, max: one.max, waitMs: 0, recall: true },
          remember: one.memo,
        });
        return { ...rest, claimed: claimed && this.#claimed(claimed) };
      }
      case "abandon":
        return queue.abandon!(one.leases.map((lease) => this.#known(lease)));
      case "sizes":
        return queue.sizes!();
      case "peek":
        return queue.peek!(one.state, one.limit);
      case "clear":
        return queue.clear!(one.states);
      case "redrive":
        return queue.redrive!(
          one.ids === undefined ? { limit: one.limit } : { ids: one.ids, limit: one.limit },
        );
      case "pause":
        return queue.pause!();
      case "resume":
        return queue.resume!();
      case "pass":
        return undefined;
    }
  }

  #over(connection: number): BrokerQueue {
    return this.queues[connection % 2] as BrokerQueue;
  }

  /** Mostly a new lease; now and then one used before, over the connection it was used on. */
  #lease(choice: number, over: number): { id: string; over: number } {
    if (choice < 12 && this.#leases.length > 0) {
      return this.#leases[this.#leases.length - 1 - (choice % this.#leases.length)] as {
        id: string;
        over: number;
      };
    }
    this.#nextLease += 1;
    const lease = { id: `lease-${this.#nextLease}`, over };
    this.#leases.push(lease);
    return lease;
  }

  #known(choice: number): string {
    const at = this.#leases.length - 1 - choice;
    return this.#leases[at]?.id ?? `never-${choice}`;
  }

  #settlements(wanted: readonly Choice[]): Settlement[] {
    return wanted.flatMap(({ delivery, verdict: given }): Settlement[] => {
      const chosen = this.deliveries[this.deliveries.length - 1 - delivery];
      return chosen === undefined ? [] : [{ delivery: chosen, verdict: given }];
    });
  }

  /** Keeps the deliveries for later settlements. */
  #claimed(reply: ClaimReply): ClaimReply {
    this.deliveries.push(...reply.deliveries);
    return reply;
  }
}

/** An answer as it can be compared: bodies by their bytes, without the tokens, which are each adapter's own affair. */
function comparable(answer: unknown): unknown {
  if (Array.isArray(answer)) return answer.map(comparable);
  if (typeof answer !== "object" || answer === null) return answer;
  const entries = Object.entries(answer).filter(([key, value]) => key !== "token" && value !== undefined);
  return Object.fromEntries(
    entries.map(([key, value]) => [
      key,
      key === "body" ? Buffer.from(value as string).toString("hex") : comparable(value),
    ]),
  );
}

async function agree(steps: readonly Step[]): Promise<void> {
  let nowMs = 1_700_000_000_000;
  const memory = new MemoryBroker({ now: () => nowMs });
  const sqlite = new SqliteBroker({ database, wallNow: () => nowMs });
  const otherSqlite = new SqliteBroker({ database, wallNow: () => nowMs });
  serial += 1;
  const name = `agreement-${serial}`;
  const settings = (leaseMs: number): QueueSettings => ({
    leaseMs,
    requestTimeoutMs: 1000,
    dedupeWindowMs: 500,
  });
  const model = new Side([memory.queue(name, settings(200)), memory.connect().queue(name, settings(500))]);
  const real = new Side([sqlite.queue(name, settings(200)), otherSqlite.queue(name, settings(500))]);
  try {
    for (const queue of [...model.queues, ...real.queues]) await queue.open();
    for (const [at, one] of steps.entries()) {
      if (one.do === "pass") nowMs += one.ms;
      const expected = comparable(await model.run(one));
      const actual = comparable(await real.run(one));
      expect({ at, did: one.do, answer: actual }).toEqual({ at, did: one.do, answer: expected });
    }
    const sizes = await model.queues[0].sizes!();
    expect(await real.queues[0].sizes!()).toEqual(sizes);
  } finally {
    await sqlite.close();
    await otherSqlite.close();
  }
}

test("memory and sqlite give the same answers to any sequence of verbs", async () => {
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 80, size: "max" }), agree), {
    numRuns: 150,
  });
}, 120_000);
