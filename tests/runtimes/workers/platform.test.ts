/** The Platform for Workers: the port's cases inside workerd, and its limits. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { workersLimits } from "../../../runtimes/workers/limits.ts";
import { workersPlatform } from "../../../runtimes/workers/platform.ts";
import { platformApplies, platformCases } from "../../conformance/platform_cases.ts";
import { startPlatformServer } from "../../support/platform_server.ts";
import { Workerd } from "../../support/workerd.ts";
import { type CaseResult, PLATFORM_CELL } from "./cells.ts";

/** All but those that need a runtime which can be asked to end. */
const EXPECTED = 23;

describe("platform: workers, inside workerd", () => {
  const harness = {
    ...PLATFORM_CELL,
    make: () => {
      throw new Error("Cases run in workerd");
    },
    play: async () => {},
  };
  let server: ReturnType<typeof startPlatformServer>;
  let workerd: Workerd;
  let results: ReadonlyMap<string, CaseResult> = new Map();

  beforeAll(async () => {
    server = startPlatformServer();
    workerd = await Workerd.start({
      entry: resolve(import.meta.dir, "platform_worker.ts"),
      bindings: { ORIGIN: server.origin },
      // The clock stands still while code computes, as it does in production.
      rules: { connections: 6, frozenClock: true },
    });
    const answers = await workerd.json<CaseResult[]>("/run", { method: "POST" });
    results = new Map(answers.map((one) => [one.name, one]));
  }, 60_000);
  afterAll(async () => {
    await workerd?.stop();
    await server?.stop();
  });

  for (const one of platformCases.filter((each) => platformApplies(each, harness))) {
    test(one.name, () => {
      expect(results.get(one.name)).toEqual({ name: one.name, error: null });
    });
  }
  test(`exactly ${EXPECTED} of ${platformCases.length} cases ran`, () => {
    expect(results.size).toBe(EXPECTED);
  });
});

describe("limits", () => {
  test("are the plan's and the trigger's", () => {
    expect(workersLimits("free", "cron")).toEqual({
      wallMs: 900_000,
      cpuMs: 10,
      requests: 50,
      connections: 6,
    });
    expect(workersLimits("paid", "alarm")).toEqual({
      wallMs: 900_000,
      cpuMs: 30_000,
      requests: 10_000,
      connections: 6,
    });
    expect(workersLimits("paid", "request").wallMs).toBe(60_000);
  });

  test("may be replaced one by one", () => {
    expect(workersLimits("free", "cron", { requests: 20 })).toMatchObject({ requests: 20, cpuMs: 10 });
  });

  test("are checked", () => {
    const ctx = { waitUntil: () => {} };
    expect(() => workersLimits("cheap" as "free", "cron")).toThrow(/plan is cheap; give "free" or "paid"/);
    expect(() => workersLimits("free", "often" as "cron")).toThrow(/trigger is often/);
    expect(() => workersLimits("free", "cron", { requests: 0 })).toThrow(/requests is 0/);
    expect(() => workersLimits("free", "cron", { wallMs: 1.5 })).toThrow(/wallMs is 1.5/);
    expect(() => workersPlatform({ ctx, limits: { subrequests: 1 } as object })).toThrow(
      /subrequests is no option; use some of wallMs, cpuMs, requests, connections/,
    );
  });

  test("default to the free plan", () => {
    expect(workersPlatform({ ctx: { waitUntil: () => {} } }).limits.requests).toBe(50);
  });
});

describe("keepAlive", () => {
  test("outlives an invocation that is over, and a promise that rejects", async () => {
    const kept: Promise<unknown>[] = [];
    workersPlatform({ ctx: { waitUntil: (promise) => kept.push(promise) } }).keepAlive(
      Promise.reject(new Error("failed")),
    );
    expect(await Promise.all(kept)).toEqual([undefined]);
    const over = workersPlatform({
      ctx: {
        waitUntil: () => {
          throw new Error("over");
        },
      },
    });
    expect(() => over.keepAlive(Promise.resolve())).not.toThrow();
  });
});
