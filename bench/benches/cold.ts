/**
 * From starting a runtime to the first claim's answer.
 *
 * @module
 */
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import type { WorkerdResult } from "../children/cold_workerd.ts";
import { alternate } from "../support/alternate.ts";
import type { Bench, Context } from "../support/bench.ts";
import { fill, openBroker, openQueue } from "../support/brokers.ts";
import { DENO, runChild } from "../support/child.ts";
import { median } from "../support/figures.ts";
import type { FirstClaimParams } from "../support/first_claim.ts";
import { startRedisHttp } from "../support/servers.ts";

/** Spawns a process; answers how long it took until it told something, in milliseconds. */
async function toFirstWord(file: string, params: unknown, command?: readonly string[]): Promise<number> {
  const from = performance.now();
  let ms = 0;
  const child = runChild(file, params, command === undefined ? {} : { command }).then((word) => {
    ms = performance.now() - from;
    return word;
  });
  await child;
  return ms;
}

function report(context: Context, name: string, claimMs: number, nothingMs: number, nothing: string): void {
  context.row({
    case: `${name}: start to first claim`,
    value: claimMs,
    unit: "ms",
    against: `${nothing}: ${nothingMs.toFixed(0)} ms`,
    ratio: claimMs / nothingMs,
  });
}

export const cold: Bench = {
  name: "cold",
  title: "start to first claim, per runtime",
  async run(context) {
    const redis = await startRedisHttp();
    try {
      const params: FirstClaimParams = { url: redis.url, token: redis.token, queue: "cold" };
      const broker = await openBroker({ kind: "redis", url: redis.url, token: redis.token }, bunPlatform());
      await fill(await openQueue(broker, params.queue), 2_000);
      await broker.close();
      const rounds = Math.max(context.rounds, context.pick(7, 5, 1));
      for (const [name, file, command] of [
        ["Bun", "cold_bun.ts", undefined],
        ["Deno", "cold_deno.ts", DENO],
      ] as const) {
        context.progress(name);
        const [claim, nothing] = (
          await alternate(rounds, [
            () => toFirstWord(file, params, command),
            () => toFirstWord("cold_nothing.ts", {}, command),
          ])
        ).map(median) as [number, number];
        report(context, name, claim, nothing, "start alone");
      }
      context.progress("workerd");
      const [results] = await alternate(context.rounds, [
        () => runChild<WorkerdResult>("cold_workerd.ts", params),
      ]);
      const all = results as WorkerdResult[];
      report(
        context,
        "workerd (miniflare)",
        median(all.map(({ claimMs }) => claimMs)),
        median(all.map(({ nothingMs }) => nothingMs)),
        "start and an empty answer",
      );
      context.row({
        case: "workerd: the Worker's bundle, minified",
        value: (all[0] as WorkerdResult).bundleBytes / 1024,
        unit: "KiB",
      });
    } finally {
      await redis.stop();
    }
    context.note(
      "Redis over HTTP, jobs waiting. Bun and Deno run the TypeScript as it is, from the process's start; workerd runs a bundle made before.",
    );
  },
};
