/**
 * The conformance cases as a Worker: `POST /run?cell=NAME` runs a cell's cases and answers what became of each.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import { MemoryBroker } from "../../../adapters/memory.ts";
import { NatsBroker } from "../../../adapters/nats/mod.ts";
import { RedisBroker } from "../../../adapters/redis/mod.ts";
import { durableObjectSqlite } from "../../../adapters/sqlite/durable_object_driver.ts";
import { SqliteBroker } from "../../../adapters/sqlite/mod.ts";
import { DurableObjectBroker, type ObjectNamespace, queueObject } from "../../../runtimes/workers/mod.ts";
import { cases } from "../../conformance/cases.ts";
import {
  applies,
  checkDeclared,
  type EngineUnderTest,
  type Harness,
  runCase,
} from "../../support/conformance.ts";
import { type CaseResult, CELLS, type Cell, type CellName } from "./cells.ts";

interface Env {
  readonly REDIS_URL: string;
  readonly REDIS_TOKEN: string;
  readonly NATS_URL: string;
  readonly QUEUES: ObjectNamespace;
  readonly INSIDE: ObjectNamespace;
}

/** Keeps jobs and runs nothing. */
export class Queues extends queueObject<Env>() {}

/** Runs the cases inside of an object. */
export class Inside extends DurableObject<Env> {
  async run(): Promise<CaseResult[]> {
    const database = durableObjectSqlite(this.ctx.storage);
    let nowMs = 1_700_000_000_000;
    return await runCell(CELLS["object's sqlite"], {
      connect: () => new SqliteBroker({ database, wallNow: () => nowMs }),
      passMs: async (ms) => {
        nowMs += ms;
      },
      stop: async () => {},
    });
  }
}

const passReal = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

async function runNamed(name: CellName, env: Env): Promise<CaseResult[]> {
  switch (name) {
    case "memory": {
      let nowMs = 0;
      const engine = new MemoryBroker({ now: () => nowMs, wallNow: () => 1_700_000_000_000 + nowMs });
      return await runCell(CELLS[name], {
        connect: () => engine.connect(),
        passMs: async (ms) => {
          nowMs += ms;
        },
        stop: async () => {},
      });
    }
    case "object's sqlite":
      return await (env.INSIDE.get(env.INSIDE.idFromName("cases")) as Inside).run();
    case "durable object":
      return await runCell(CELLS[name], {
        connect: () => new DurableObjectBroker({ namespace: env.QUEUES }),
        passMs: passReal,
        stop: async () => {},
      });
    case "redis":
      return await runCell(CELLS[name], {
        connect: () => new RedisBroker({ url: env.REDIS_URL, token: env.REDIS_TOKEN }),
        passMs: passReal,
        stop: async () => {},
      });
    case "nats":
      return await runCell(CELLS[name], {
        connect: () => new NatsBroker({ url: env.NATS_URL }),
        passMs: passReal,
        stop: async () => {},
      });
  }
}

/** Runs every case that applies, one after the other, and the check that the broker declares what it has. */
async function runCell(cell: Cell, engine: EngineUnderTest): Promise<CaseResult[]> {
  const harness: Harness = { ...cell, start: async () => engine };
  const results: CaseResult[] = [];
  const attempt = async (name: string, run: () => Promise<void> | void) => {
    try {
      await run();
      results.push({ name, error: null });
    } catch (error) {
      results.push({ name, error: error instanceof Error ? `${error.name}: ${error.message}` : "no error" });
    }
  };
  await attempt("declares what it has, and no more", () => checkDeclared(cases, harness, engine.connect()));
  for (const one of cases) {
    if (applies(one, harness)) await attempt(one.name, () => runCase(one, harness, engine));
  }
  return results;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const cell = new URL(request.url).searchParams.get("cell") ?? "";
    if (!Object.hasOwn(CELLS, cell)) return new Response("no such cell", { status: 404 });
    return Response.json(await runNamed(cell as CellName, env));
  },
};
