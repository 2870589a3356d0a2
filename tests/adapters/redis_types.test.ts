/**
 * A key of the queue that holds another type than it should, whoever wrote it: a script that fails in its middle would leave half of a move behind,
 * and Redis undoes nothing. So nothing may be moved, and once the key is as it was the same request does its work: no job is lost, none doubled.
 */
import { describe, expect, test } from "bun:test";
import { KEY_NAMES } from "../../adapters/redis/scripts/common.ts";
import type { BrokerQueue, Delivery, JobState, Verdict } from "../../src/broker.ts";
import { BrokerError } from "../../src/errors.ts";
import {
  bytes,
  DEAD,
  job,
  leaseId,
  put,
  RELEASE,
  RETRY,
  settle,
  take,
} from "../support/conformance_steps.ts";
import { redisForFile } from "../support/redis_fixture.ts";

/** All but the one that says whether there is a queue. */
const KEYS = KEY_NAMES.filter((name) => name !== "queue");
const STATES: readonly JobState[] = ["ready", "delayed", "held", "dead"];

const redis = redisForFile();

interface World {
  readonly queue: BrokerQueue;
  /** The name of one of its keys. */
  key(name: string): string;
}

/** What is to be done, the same each time it is called. */
type Deed = () => Promise<unknown>;

const JOBS = [
  job("a", { priority: "high", body: "1" }),
  job("b", { body: "2" }),
  job("c", { priority: "low", body: "3" }),
];

async function claimed({ queue }: World): Promise<readonly Delivery[]> {
  await put(queue, ...JOBS);
  return await take(queue);
}

function claiming({ queue }: World): Deed {
  const id = leaseId();
  return () => queue.claim({ leaseId: id, max: 100, waitMs: 0 });
}

const settling = (verdict: Verdict) => async (world: World) => {
  const deliveries = await claimed(world);
  return () => settle(world.queue, deliveries, verdict);
};

const DEEDS: Readonly<Record<string, (world: World) => Promise<Deed>>> = {
  async enqueue({ queue }) {
    const jobs = JOBS.map((one) => ({ ...one, dedupe: true }));
    jobs.push(job("d", { delayMs: 60_000, dedupe: true, body: "4" }));
    // Under another request's id: what the first left behind must not count as there already.
    return () => queue.enqueue(leaseId(), jobs);
  },
  async "claim from all levels"(world) {
    await put(world.queue, ...JOBS);
    return claiming(world);
  },
  async "claim from the inbox"(world) {
    await redis.server.command("RPUSH", world.key("inbox"), "1", "2");
    return claiming(world);
  },
  async "claim what came due"(world) {
    await put(world.queue, ...JOBS.map((one) => ({ ...one, delayMs: 60_000 })));
    for (const member of (await redis.server.command(
      "ZRANGE",
      world.key("delayed"),
      "0",
      "-1",
    )) as string[]) {
      await redis.server.command("ZADD", world.key("delayed"), "1", member);
    }
    return claiming(world);
  },
  async "claim what a lease left"(world) {
    const [first] = await claimed(world);
    await redis.server.command("ZADD", world.key("leases"), "1", first?.leaseId ?? "");
    return claiming(world);
  },
  release: settling(RELEASE),
  retry: settling(RETRY),
  "retry later": settling({ kind: "retry", delayMs: 60_000 }),
  bury: settling(DEAD),
  async abandon(world) {
    const [first] = await claimed(world);
    return () => world.queue.abandon?.([first?.leaseId ?? ""]) as Promise<void>;
  },
  async peek(world) {
    await redis.server.command("RPUSH", world.key("inbox"), "1", "2");
    return () => world.queue.peek?.("ready", 10) as Promise<unknown>;
  },
  async redrive(world) {
    await settle(world.queue, await claimed(world), DEAD);
    return () => world.queue.redrive?.({ limit: 10 }) as Promise<unknown>;
  },
};

describe("is left alone by", () => {
  for (const [name, prepare] of Object.entries(DEEDS)) {
    test(name, async () => {
      let failures = 0;
      for (const key of KEYS) {
        const queue = await redis.fresh();
        const world = { queue, key: (one: string) => `eddy:{${queue.name}}:${one}` };
        const deed = await prepare(world);
        const here = world.key(key);
        const wasThere = (await redis.server.command("EXISTS", here)) === 1;
        if (wasThere) await redis.server.command("RENAME", here, "kept");
        await redis.server.command("SET", here, "of another type");
        await deed().catch((error: unknown) => {
          expect(error).toBeInstanceOf(BrokerError);
          expect((error as BrokerError).message).toContain(
            "a key of the queue holds another type than it should",
          );
          failures += 1;
        });
        await redis.server.command("DEL", here);
        if (wasThere) await redis.server.command("RENAME", "kept", here);
        await deed();
        const found: string[] = [];
        for (const state of STATES) {
          for (const { body } of (await queue.peek?.(state, 100)) ?? []) {
            found.push(new TextDecoder().decode(bytes(body)));
          }
        }
        const count = name === "enqueue" ? 4 : /inbox|peek/.test(name) ? 2 : 3;
        expect([key, ...found.sort()]).toEqual([key, ...["1", "2", "3", "4"].slice(0, count)]);
      }
      expect(failures).toBeGreaterThan(0);
    });
  }
});

test("nor is anything moved by a counter that is no number", async () => {
  for (const [name, prepare] of Object.entries(DEEDS)) {
    const queue = await redis.fresh();
    const world = { queue, key: (one: string) => `eddy:{${queue.name}}:${one}` };
    const deed = await prepare(world);
    for (const place of ["", "x", "-1", "1e3", "9007199254740992"]) {
      const before = await redis.server.command("HGET", world.key("queue"), "place");
      await redis.server.command("HSET", world.key("queue"), "place", place);
      await expect(deed()).rejects.toThrow("holds another type than it should (WRONGTYPE)");
      if (before === null) await redis.server.command("HDEL", world.key("queue"), "place");
      else await redis.server.command("HSET", world.key("queue"), "place", String(before));
    }
    await deed();
    let found = 0;
    for (const state of STATES) found += ((await queue.peek?.(state, 100)) ?? []).length;
    expect([name, found]).toEqual([name, name === "enqueue" ? 4 : /inbox|peek/.test(name) ? 2 : 3]);
  }
});
