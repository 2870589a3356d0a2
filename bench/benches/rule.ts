/**
 * The three phases of the published prefetch example: how many claims the jobs take.
 *
 * @module
 */
import { PHASES, runPhase } from "../../examples/prefetch.ts";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { atMost, type Bench } from "../support/bench.ts";
import { type BrokerSpec, openBroker } from "../support/brokers.ts";
import { median } from "../support/figures.ts";
import { Scratch, startRedisHttp } from "../support/servers.ts";

/** Pops a job, as the example printed them. */
const PUBLISHED = { a: 40 / 40, b: 21 / 200, c: 10 / 10 } as const;

export const rule: Bench = {
  name: "rule",
  title: "claims a job in the three phases of the 250 ms rule",
  async run(context) {
    const platform = bunPlatform();
    const scratch = new Scratch();
    const redis = await startRedisHttp();
    try {
      const specs: BrokerSpec[] = [
        { kind: "sqlite", file: scratch.file(), synchronous: "full" },
        { kind: "redis", url: redis.url, token: redis.token },
      ];
      for (const spec of specs) {
        const broker = await openBroker(spec, platform);
        for (const key of ["a", "b", "c"] as const) {
          const phase = PHASES[key];
          context.progress(`${spec.kind}, phase ${key}`);
          const jobs = context.pick(phase.jobs, phase.jobs, Math.min(phase.jobs, 20));
          const claims: number[] = [];
          for (let round = 0; round < context.rounds; round++) {
            const run = {
              ...phase,
              jobs,
              jobMs: context.pick(phase.jobMs, phase.jobMs, Math.min(phase.jobMs, 10)),
            };
            claims.push((await runPhase(run, { broker, platform, print: () => {} })).sizes.length);
          }
          const value = median(claims) / jobs;
          context.row({
            case: `${spec.kind}, ${phase.title}`,
            value,
            unit: "claims/job",
            against: `the published run: ${PUBLISHED[key].toFixed(3)}`,
            ratio: value / PUBLISHED[key],
            ...(key === "b" ? { bar: atMost(value, 24 / 200) } : {}),
          });
        }
        await broker.close();
      }
    } finally {
      await redis.stop();
      scratch.remove();
    }
  },
};
