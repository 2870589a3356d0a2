/** What the platforms of processes may spend. */
import { describe, expect, test } from "bun:test";
import { denoDeployLimits } from "../../runtimes/deno/limits.ts";
import { processPlatform } from "../../runtimes/process_platform.ts";

const NEVER = Number.POSITIVE_INFINITY;

describe("Deno Deploy's limits", () => {
  test("are by tier, and any may be replaced", () => {
    expect(denoDeployLimits("free")).toEqual({
      wallMs: 50_000,
      cpuMs: 50,
      requests: NEVER,
      connections: NEVER,
    });
    expect(denoDeployLimits("paid", { wallMs: 20_000, requests: undefined } as object)).toMatchObject({
      wallMs: 20_000,
      cpuMs: 200,
      requests: NEVER,
    });
  });

  test("refuse what they do not know", () => {
    expect(() => denoDeployLimits("toString" as "free")).toThrow(
      'Cannot set the limits of Deno Deploy: tier is toString; give "free" or "paid"',
    );
    expect(() => denoDeployLimits("free", { wallMs: 0 })).toThrow(
      "wallMs is 0; give a whole number from 1 on",
    );
    expect(() => denoDeployLimits("free", { wall: 1 } as object)).toThrow(
      "wall is no option; use some of wallMs, cpuMs, requests, connections",
    );
  });
});

describe("a process's platform", () => {
  const options = {
    name: "test",
    connections: 256,
    openWebSocket: () => {
      throw new Error("not used");
    },
  };

  test("has no limits of its own but connections", () => {
    expect(processPlatform(options).limits).toEqual({
      wallMs: NEVER,
      cpuMs: NEVER,
      requests: NEVER,
      connections: 256,
    });
  });

  test("takes those of where it runs, and never more connections than its runtime opens", () => {
    const limits = denoDeployLimits("paid", { requests: 40 });
    expect(processPlatform({ ...options, limits }).limits).toEqual({ ...limits, connections: 256 });
  });
});
