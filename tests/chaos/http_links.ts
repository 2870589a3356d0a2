/**
 * The ways of a run's places to an HTTP server, each through a proxy of its own.
 *
 * @module
 */
import type { FaultLog } from "../support/fault_log.ts";
import { type HttpFault, HttpProxy, PASS, seededFaults } from "../support/http_proxy.ts";
import type { Trouble } from "./troubles.ts";

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

/** The HTTP proxies of a run, one for each place. */
export class HttpLinks {
  readonly #proxies = new Map<string, HttpProxy>();
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
  }

  /** Starts one before an origin; answers its address. */
  async add(place: string, target: string): Promise<string> {
    const proxy = await HttpProxy.start(target);
    proxy.script = seededFaults(this.#seed + this.#proxies.size, ONE_IN, HTTP_FAULTS);
    this.#proxies.set(place, proxy);
    return proxy.url;
  }

  calm(): void {
    for (const proxy of this.#proxies.values()) proxy.script = () => PASS;
  }

  faults(): Trouble[] {
    return logged(this.#proxies);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#proxies.values()].map((one) => one.stop()));
  }
}

/** What the proxies of places did, each to its place. */
export function logged(proxies: ReadonlyMap<string, { readonly log: FaultLog }>): Trouble[] {
  return [...proxies].flatMap(([whom, { log }]) => log.records.map((record) => ({ ...record, whom })));
}
