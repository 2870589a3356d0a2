/**
 * The engines of a chaos run, each with the faults it knows: the server's end and start, and those of the network before it.
 *
 * @module
 */
import { join } from "node:path";
import { startRedisOverHttp } from "../support/gateway.ts";
import { type HttpFault, HttpProxy, PASS, seededFaults } from "../support/http_proxy.ts";
import { startNats } from "../support/nats_server.ts";
import { WebSocketProxy } from "../support/ws_proxy.ts";

export const ADAPTERS = ["sqlite", "redis", "nats"] as const;
export type AdapterName = (typeof ADAPTERS)[number];

export interface ChaosEngine {
  /** The broker's name on a command line, through the faults, and past them. */
  readonly broker: string;
  readonly direct: string;
  readonly env: Readonly<Record<string, string>>;
  /** Whether a confirmed ack outlives the server's SIGKILL. */
  readonly keepsAcks: boolean;
  /** Ends the server as a crash would (or, if `gently`, as an operator), and starts it again after `downMs`. */
  restart?(downMs: number, gently: boolean): Promise<void>;
  /** A fault of the network that lasts `ms` milliseconds, or only a moment (`cut`). */
  disturb?(kind: "cut" | "freeze", ms: number): Promise<void>;
  /** From now on the network has no faults. */
  calm(): void;
  /** How many faults of the network there were. */
  faults(): number;
  stop(): Promise<void>;
}

/** A 401 is not among them: it is a refusal, and rightly final. */
const HTTP_FAULTS: readonly HttpFault[] = [
  { kind: "cut" },
  { kind: "loseReply" },
  { kind: "halfOpen" },
  { kind: "stall" },
  { kind: "repeat" },
  { kind: "truncate" },
  { kind: "delay", thereMs: 150, backMs: 0 },
  { kind: "delay", thereMs: 0, backMs: 150 },
  { kind: "status", status: 429 },
  { kind: "status", status: 500 },
  { kind: "status", status: 502 },
];
/** One request in so many is hit. */
const ONE_IN = 12;

/** Starts an engine. What it keeps is below `directory`, or gone with its server. */
export async function startEngine(
  adapter: AdapterName,
  directory: string,
  seed: number,
): Promise<ChaosEngine> {
  if (adapter === "redis") return await redisEngine(seed);
  if (adapter === "nats") return await natsEngine();
  const file = `sqlite:${join(directory, "jobs.sqlite")}`;
  return {
    broker: file,
    direct: file,
    env: {},
    keepsAcks: true,
    calm: () => {},
    faults: () => 0,
    stop: async () => {},
  };
}

async function redisEngine(seed: number): Promise<ChaosEngine> {
  const redis = await startRedisOverHttp({ persist: true });
  const proxy = await HttpProxy.start(redis.gateway.url);
  proxy.script = seededFaults(seed, ONE_IN, HTTP_FAULTS);
  return {
    broker: proxy.url,
    direct: redis.gateway.url,
    env: { EDDY_BROKER_TOKEN: redis.gateway.token },
    keepsAcks: true,
    async restart(downMs) {
      await redis.server.kill();
      await Bun.sleep(downMs);
      await redis.server.restart();
    },
    calm() {
      proxy.script = () => PASS;
    },
    faults: () => [...proxy.injected.values()].reduce((sum, count) => sum + count, 0),
    async stop() {
      await proxy.stop();
      await redis.stop();
    },
  };
}

async function natsEngine(): Promise<ChaosEngine> {
  const server = await startNats();
  const proxy = await WebSocketProxy.start(server.webSocketPort);
  let faults = 0;
  return {
    broker: proxy.url,
    direct: server.url,
    env: {},
    // It writes what was acked some hundred milliseconds later.
    keepsAcks: false,
    async restart(downMs, gently) {
      await (gently ? server.shutDown() : server.kill());
      await Bun.sleep(downMs);
      await server.restart();
    },
    async disturb(kind, ms) {
      faults += 1;
      if (kind === "cut") return proxy.cut();
      proxy.freeze();
      await Bun.sleep(ms);
      proxy.thaw();
    },
    calm: () => proxy.thaw(),
    faults: () => faults,
    async stop() {
      await proxy.stop();
      await server.stop();
    },
  };
}
