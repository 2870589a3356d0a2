/**
 * SIGKILL in the middle of the work, on the embedded broker, on Redis over HTTP and on NATS: every accepted job is finished, only jobs held at a kill run twice, and a job that
 * kills its workers ends as a dead letter without taking a neighbour with it.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunPlatform, chooseBroker, openBroker } from "../../runtimes/bun/mod.ts";
import { type Broker, type BrokerQueue, Producer, queue, resolveOptions } from "../../src/mod.ts";
import { DENO } from "../runtimes/deno/process.ts";
import { type RedisOverHttp, startRedisOverHttp } from "../support/gateway.ts";
import { ids, type Line, readLedger, untilLedger } from "../support/ledger.ts";
import { type NatsServer, startNats } from "../support/nats_server.ts";
import type { VictimBody, VictimSettings } from "../support/victim.ts";

const VICTIM = [process.execPath, join(import.meta.dir, "../support/victim_main.ts")];
const DENO_VICTIM = [
  DENO,
  "run",
  "--no-check",
  "--no-prompt",
  "--allow-read",
  "--allow-write",
  "--allow-run",
  `--allow-env=${["EDDY_VICTIM", "EDDY_BROKER", "EDDY_BROKER_TOKEN", "UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN"]}`,
  join(import.meta.dir, "../runtimes/deno/programs/victim.ts"),
];
const platform = bunPlatform();

interface Engine {
  readonly name: string;
  /** Starts a victim. */
  readonly victim: readonly string[];
  /** The broker's name on a command line, and the environment that goes with it. */
  broker(): string;
  readonly env: Record<string, string>;
}

let directory: string;
let redis: RedisOverHttp;
let nats: NatsServer;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "eddy-kill-"));
  [redis, nats] = await Promise.all([startRedisOverHttp(), startNats()]);
});
afterAll(async () => {
  await redis.stop();
  await nats.stop();
  if (!process.env.KEEP) await rm(directory, { recursive: true });
  else console.log(directory);
});

const ENGINES: readonly Engine[] = [
  { name: "sqlite", victim: VICTIM, broker: () => `sqlite:${join(directory, "jobs.sqlite")}`, env: {} },
  {
    name: "sqlite on Deno",
    victim: DENO_VICTIM,
    broker: () => `sqlite:${join(directory, "deno.sqlite")}`,
    env: {},
  },
  {
    name: "redis",
    victim: VICTIM,
    broker: () => redis.gateway.url,
    env: { EDDY_BROKER_TOKEN: "test-token" },
  },
  { name: "nats", victim: VICTIM, broker: () => nats.url, env: {} },
];

/** Victims started one after another on one ledger. */
class Victims {
  readonly ledger: string;
  readonly #settings: VictimSettings;
  readonly #env: Record<string, string>;
  readonly #command: readonly string[];
  #process: Bun.Subprocess | undefined;

  constructor(engine: Engine, name: string, settings: Omit<VictimSettings, "broker" | "queue" | "ledger">) {
    this.ledger = join(directory, `${engine.name}-${name}.ledger`);
    this.#settings = { ...settings, broker: engine.broker(), queue: name, ledger: this.ledger };
    this.#env = engine.env;
    this.#command = engine.victim;
  }

  start(): Bun.Subprocess {
    this.#process = Bun.spawn([...this.#command], {
      env: { ...process.env, ...this.#env, EDDY_VICTIM: JSON.stringify(this.#settings) },
      stdio: ["ignore", "inherit", "inherit"],
    });
    return this.#process;
  }

  async kill(signal: NodeJS.Signals): Promise<number> {
    this.#process?.kill(signal);
    return (await this.#process?.exited) ?? -1;
  }
}

async function withBroker<T>(engine: Engine, use: (broker: Broker) => Promise<T>): Promise<T> {
  const broker = await openBroker(chooseBroker(engine.broker(), engine.env), platform);
  try {
    return await use(broker);
  } finally {
    await broker.close();
  }
}

async function opened(broker: Broker, name: string): Promise<BrokerQueue> {
  // Of the lease of the victims: where it belongs to the queue, whoever opens it first decides.
  const { settings } = resolveOptions(queue(name).handle(() => {}, { leaseMs: LEASE_MS }));
  const opening = broker.queue(name, { ...settings, requestTimeoutMs: 5_000 });
  await opening.open();
  return opening;
}

/**
 * Resolves when the broker has no job left but dead letters. The broker is asked, not the ledger: a kill may fall between the broker's taking of a verdict and the ledger's line.
 */
async function untilEmpty(asked: BrokerQueue, withinMs = 60_000): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const sizes = await asked.sizes?.();
    if (sizes !== undefined && sizes.ready + sizes.delayed + sizes.held === 0) return;
    if (performance.now() > deadline) {
      throw new Error(`Waited ${withinMs} ms in vain for an empty queue: ${JSON.stringify(sizes)}`);
    }
    await Bun.sleep(20);
  }
}

/** Jobs that are done with for good. */
function settledIds(lines: readonly Line[]): Set<string> {
  return new Set([...ids(lines, "ack"), ...ids(lines, "dead")]);
}

const LEASE_MS = 1_000;

for (const engine of ENGINES) {
  describe(engine.name, () => {
    test("ten kills in the middle of a batch: all jobs finish, only those held at a kill run twice", async () => {
      const JOBS = 400;
      const KILLS = 10;
      const victims = new Victims(engine, "kills", {
        options: { leaseMs: LEASE_MS, prefetch: 16, maxAttempts: 20, concurrency: 2 },
        jobMs: 2,
        graceMs: 5_000,
      });
      const definition = queue<VictimBody>("kills");
      await withBroker(engine, async (broker) => {
        const asked = await opened(broker, "kills");
        const accepted = await new Producer({ broker, platform }).enqueueMany(
          definition,
          Array.from({ length: JOBS }, () => ({ body: {} })),
        );
        const all = new Set(accepted.map(({ id }) => id));
        expect(all.size).toBe(JOBS);
        // Each job that was begun and not settled when its worker was killed may run again, and no other.
        const mayRepeat = new Set<string>();
        let started = 0;
        for (let kill = 1; kill <= KILLS; kill += 1) {
          victims.start();
          await untilLedger(
            victims.ledger,
            `the victim of kill ${kill} in the middle of a batch`,
            (lines) => ids(lines, "start").length >= started + 20,
          );
          await victims.kill("SIGKILL");
          const lines = readLedger(victims.ledger);
          started = ids(lines, "start").length;
          const settled = settledIds(lines);
          for (const id of ids(lines, "start")) if (!settled.has(id)) mayRepeat.add(id);
        }
        victims.start();
        await untilEmpty(asked);
        expect(await victims.kill("SIGTERM")).toBe(0);
        const lines = readLedger(victims.ledger);
        expect(new Set(ids(lines, "end"))).toEqual(all);
        const starts = new Map<string, number>();
        for (const id of ids(lines, "start")) starts.set(id, (starts.get(id) ?? 0) + 1);
        const repeated = [...starts].filter(([, count]) => count > 1).map(([id]) => id);
        expect(repeated.filter((id) => !mayRepeat.has(id))).toEqual([]);
        expect(await asked.sizes?.()).toEqual({
          ready: 0,
          delayed: 0,
          held: 0,
          dead: 0,
          paused: false,
        });
        console.log(
          `${engine.name}: ${JOBS} jobs, ${KILLS} kills, 0 lost, ${repeated.length} ran twice or more, ${mayRepeat.size} were held at a kill`,
        );
      });
    }, 120_000);

    test("a job that kills its worker each time ends as a dead letter, and none of its neighbours does", async () => {
      const NEIGHBOURS = 30;
      const MAX_ATTEMPTS = 3;
      const victims = new Victims(engine, "poison", {
        options: { leaseMs: LEASE_MS, prefetch: 16, maxAttempts: MAX_ATTEMPTS, concurrency: 2 },
        jobMs: 1,
        graceMs: 5_000,
      });
      const definition = queue<VictimBody>("poison");
      await withBroker(engine, async (broker) => {
        const asked = await opened(broker, "poison");
        const producer = new Producer({ broker, platform });
        const neighbours = new Set<string>();
        const add = async (body: VictimBody, count: number) =>
          (
            await producer.enqueueMany(
              definition,
              Array.from({ length: count }, () => ({ body })),
            )
          ).map(({ id }) => id);
        for (const id of await add({}, NEIGHBOURS / 2)) neighbours.add(id);
        const [poison] = await add({ poison: true }, 1);
        for (const id of await add({}, NEIGHBOURS / 2)) neighbours.add(id);
        let kills = 0;
        for (;;) {
          const victim = victims.start();
          const done = untilEmpty(asked);
          // Whichever comes first: the poison's next kill, or the end.
          const ended = await Promise.race([
            done.then(() => "done" as const),
            victim.exited.then(() => "killed" as const),
          ]);
          done.catch(() => {});
          if (ended === "done") break;
          kills += 1;
          expect(kills).toBeLessThanOrEqual(MAX_ATTEMPTS);
        }
        expect(await victims.kill("SIGTERM")).toBe(0);
        expect(kills).toBe(MAX_ATTEMPTS);
        const lines = readLedger(victims.ledger);
        expect(
          lines.filter((line) => line.word === "start" && line.id === poison).map((line) => line.attempt),
        ).toEqual([1, 2, 3]);
        expect(new Set(ids(lines, "end"))).toEqual(neighbours);
        const dead = await asked.peek?.("dead", 100);
        expect(dead?.map(({ id }) => id)).toEqual([poison as string]);
        expect(dead?.[0]?.error).toContain(`attempt ${MAX_ATTEMPTS} of ${MAX_ATTEMPTS}`);
      });
    }, 120_000);
  });
}
