/**
 * The engines of a chaos run, each with the faults it knows: the server's end and start and standing still, and those of the network, which each place of the run
 * has for itself, so that it is known whom a fault hit.
 *
 * @module
 */
import { join } from "node:path";
import { bunPlatform, chooseBroker, openBroker } from "../../runtimes/bun/mod.ts";
import type { Dice } from "../simulation/dice.ts";
import { startRedisOverHttp } from "../support/gateway.ts";
import { startNats } from "../support/nats_server.ts";
import { WebSocketProxy } from "../support/ws_proxy.ts";
import { brokerEye, type Eye } from "./eye.ts";
import { HttpLinks, logged } from "./http_links.ts";
import type { Program } from "./member.ts";
import type { Note } from "./notes.ts";
import { startObject } from "./object_engine.ts";
import { KILLED, STOPPED, type Trouble, type Troubles } from "./troubles.ts";
import { disturbWebSocket } from "./ws_deeds.ts";

export const ADAPTERS = ["sqlite", "redis", "nats", "object"] as const;
export type AdapterName = (typeof ADAPTERS)[number];

/** What a process is told of its broker. */
export interface Link {
  /** The broker's name on a command line, or the address of an HTTP surface. */
  readonly broker: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface ChaosEngine {
  /** Whether a confirmed ack outlives the server's SIGKILL; if not, how old it may be and still be forgotten, in milliseconds. */
  readonly keepsAcks: boolean;
  readonly forgetsMs: number;
  /** Whether a crash may leave both a job and the copy that was to take its place. */
  readonly movesByCopy: boolean;
  /** Whether a process that stands still may hold up the others. */
  readonly sharesLock: boolean;
  /** What its producers run. */
  readonly producer: Program;
  /** Where the engine runs the handlers itself, there are no workers, and their notes are here. */
  readonly notes?: readonly Note[];
  /** The way of one place of the run to the engine, through faults of its own. */
  link(place: string): Promise<Link>;
  eye(): Promise<Eye>;
  /** Ends the server as a crash would (or, if `gently`, as an operator), and starts it again after `downMs`. */
  restart?(downMs: number, gently: boolean): Promise<void>;
  /** Has the server stand still for so long. */
  freeze?(forMs: number): Promise<void>;
  /** A fault of somebody's network that lasts about `ms` milliseconds, or only a moment. */
  disturb?(dice: Dice, ms: number): Promise<void>;
  /** From now on the network has no faults. */
  calm(): void;
  /** What the network did, and to whom. */
  faults(): readonly Trouble[];
  stop(): Promise<void>;
}

export interface EngineOptions {
  /** What the engine keeps is below it, or gone with its server. */
  readonly directory: string;
  readonly seed: number;
  readonly troubles: Troubles;
}

/** Starts an engine. */
export async function startEngine(adapter: AdapterName, options: EngineOptions): Promise<ChaosEngine> {
  if (adapter === "redis") return await redisEngine(options);
  if (adapter === "nats") return await natsEngine(options);
  if (adapter === "object") return await startObject(options);
  const broker = `sqlite:${join(options.directory, "jobs.sqlite")}`;
  return {
    keepsAcks: true,
    forgetsMs: 0,
    movesByCopy: false,
    sharesLock: true,
    producer: "producer_main.ts",
    link: async () => ({ broker, env: {} }),
    eye: () => eyeOf({ broker, env: {} }),
    calm: () => {},
    faults: () => [],
    stop: async () => {},
  };
}

async function eyeOf({ broker, env }: Link): Promise<Eye> {
  return await brokerEye(await openBroker(chooseBroker(broker, env), bunPlatform(), () => {}));
}

async function redisEngine({ seed, troubles }: EngineOptions): Promise<ChaosEngine> {
  const { server, gateway, stop } = await startRedisOverHttp({ persist: true });
  const links = new HttpLinks(seed);
  const env = { EDDY_BROKER_TOKEN: gateway.token };
  return {
    keepsAcks: true,
    forgetsMs: 0,
    movesByCopy: false,
    sharesLock: false,
    producer: "producer_main.ts",
    link: async (place) => ({ broker: await links.add(place, gateway.url), env }),
    eye: () => eyeOf({ broker: gateway.url, env }),
    async restart(downMs) {
      const up = troubles.begin(KILLED, "server");
      await server.kill();
      await Bun.sleep(downMs);
      await server.restart();
      up();
    },
    async freeze(forMs) {
      const thawed = troubles.begin("frozen", "server");
      server.freeze();
      await Bun.sleep(forMs);
      server.thaw();
      thawed();
    },
    calm: () => links.calm(),
    faults: () => links.faults(),
    async stop() {
      await links.stop();
      await stop();
    },
  };
}

/** A nats-server writes what was acked some hundred milliseconds later, and where others keep the machine busy, seconds later. */
const NATS_FORGETS_MS = 5_000;

async function natsEngine({ troubles }: EngineOptions): Promise<ChaosEngine> {
  const server = await startNats();
  const proxies = new Map<string, WebSocketProxy>();
  return {
    keepsAcks: false,
    forgetsMs: NATS_FORGETS_MS,
    movesByCopy: true,
    sharesLock: false,
    producer: "producer_main.ts",
    async link(place) {
      const proxy = await WebSocketProxy.start(server.webSocketPort);
      proxies.set(place, proxy);
      return { broker: proxy.url, env: {} };
    },
    eye: () => eyeOf({ broker: server.url, env: {} }),
    async restart(downMs, gently) {
      const up = troubles.begin(gently ? STOPPED : KILLED, "server");
      await (gently ? server.shutDown() : server.kill());
      await Bun.sleep(downMs);
      await server.restart();
      up();
    },
    async freeze(forMs) {
      const thawed = troubles.begin("frozen", "server");
      await server.freeze();
      await Bun.sleep(forMs);
      server.thaw();
      thawed();
    },
    disturb: (dice, ms) => disturbWebSocket(dice.pick([...proxies.values()]), dice, ms),
    calm() {
      for (const proxy of proxies.values()) proxy.calm();
    },
    faults: () => logged(proxies),
    async stop() {
      await Promise.all([...proxies.values()].map((one) => one.stop()));
      await server.stop();
    },
  };
}
