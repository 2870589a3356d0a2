/**
 * A slow link: 5 ms each way, with as much under way at a time as there is. How much of it a worker can use.
 *
 * @module
 */
import { startNats } from "../../tests/support/nats_server.ts";
import type { EddyParams, EddyResult } from "../children/eddy.ts";
import { alternate } from "../support/alternate.ts";
import { atLeast, type Bar, type Bench, type Context } from "../support/bench.ts";
import type { BrokerSpec } from "../support/brokers.ts";
import { runChild } from "../support/child.ts";
import { median } from "../support/figures.ts";
import { startLink } from "../support/link.ts";
import { startRedisHttp } from "../support/servers.ts";

const ONE_WAY_MS = 5;
const ROUND_TRIP_MS = 2 * ONE_WAY_MS;
/** What the published experiment reached over its link, in jobs a second. */
const PUBLISHED: ReadonlyMap<number, number> = new Map([
  [1, 78],
  [10, 758],
  [100, 7_761],
  [1000, 13_488],
]);
const LEAST_SHARE: ReadonlyMap<number, number> = new Map([
  [1, 0.95],
  [10, 0.95],
  [100, 0.9],
]);
const LEAST_RATE = 20_000;

interface Ends {
  readonly kind: "redis" | "nats";
  /** Through the link, and past it. */
  readonly far: BrokerSpec;
  readonly near: BrokerSpec;
}

type Prefetch = number | "auto";

async function zeroCost(context: Context, ends: Ends): Promise<void> {
  const cases: { readonly prefetch: Prefetch; readonly jobs: number }[] = [
    { prefetch: 1, jobs: context.pick(300, 100, 10) },
    { prefetch: 10, jobs: context.pick(3_000, 1_000, 40) },
    { prefetch: 100, jobs: context.pick(30_000, 10_000, 200) },
    { prefetch: 1000, jobs: context.pick(200_000, 50_000, 1_000) },
    { prefetch: "auto", jobs: context.pick(5_000, 2_000, 60) },
  ];
  for (const { prefetch, jobs } of cases) {
    context.progress(`${ends.kind}, zero-cost jobs, prefetch ${prefetch}`);
    const params: EddyParams = {
      broker: ends.far,
      fillBy: ends.near,
      jobs,
      warmUp: context.pick(3_000, 3_000, 20),
      handler: { prefetch },
      jobMs: 0,
    };
    const [results] = await alternate(context.rounds, [() => runChild<EddyResult>("eddy.ts", params)]);
    const value = median((results as EddyResult[]).map(({ ms }) => (jobs / ms) * 1000));
    const most = ((prefetch === "auto" ? 16 : prefetch) / ROUND_TRIP_MS) * 1000;
    const published = prefetch === "auto" ? undefined : PUBLISHED.get(prefetch);
    const fast = prefetch === 1000;
    let bar: Bar | undefined;
    const share = prefetch === "auto" ? undefined : LEAST_SHARE.get(prefetch);
    if (share !== undefined) bar = atLeast(value / most, share, " ×");
    if (fast) bar = atLeast(value, LEAST_RATE, " jobs/s");
    const article = published === undefined ? "" : ` (the article: ${published.toLocaleString("en-US")})`;
    context.row({
      case: `${ends.kind}, zero-cost jobs, prefetch ${prefetch}`,
      value,
      unit: "jobs/s",
      against: fast
        ? `the article: ${published?.toLocaleString("en-US")}`
        : `${prefetch === "auto" ? 16 : "prefetch"} ÷ round trip: ${most.toLocaleString("en-US")}${article}`,
      ratio: fast ? value / (published as number) : value / most,
      ...(bar === undefined ? {} : { bar }),
    });
  }
}

async function tenMs(context: Context, ends: Ends): Promise<void> {
  for (const prefetch of [1, 10, 100, "auto"] as const) {
    context.progress(`${ends.kind}, 10 ms jobs, prefetch ${prefetch}`);
    const params: EddyParams = {
      broker: ends.far,
      fillBy: ends.near,
      jobs: context.pick(500, 200, 8),
      warmUp: context.pick(3_000, 3_000, 20),
      handler: { prefetch },
      jobMs: 10,
    };
    const results: EddyResult[] = [];
    for (let round = 0; round < context.rounds; round++) {
      results.push(await runChild<EddyResult>("eddy.ts", params));
    }
    const value = median(results.map(({ runningMs, workMs }) => runningMs / workMs));
    context.row({
      case: `${ends.kind}, 10 ms jobs on one slot, prefetch ${prefetch}`,
      value,
      unit: "of the time running",
      ...(prefetch === "auto" ? { bar: atLeast(value, 0.97) } : {}),
    });
  }
}

/** What a request that does nothing takes over the link, in milliseconds. */
async function pingMs(context: Context, url: string, token: string): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < context.pick(100, 50, 5); n++) {
    const from = performance.now();
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: '["PING"]',
    });
    await response.text();
    times.push(performance.now() - from);
  }
  return median(times);
}

export const link: Bench = {
  name: "link",
  title: "a link of 5 ms each way: throughput by prefetch, and how busy one slot is",
  async run(context) {
    const redis = await startRedisHttp();
    const slow = await startLink(Number(new URL(redis.url).port), ONE_WAY_MS);
    try {
      const far = `http://127.0.0.1:${slow.port}`;
      const bareMs = await pingMs(context, far, redis.token);
      for (const [name, value] of [
        ["the link itself: a byte there and back", slow.roundTripMs],
        ["a PING over HTTP through the link", bareMs],
      ] as const) {
        const nominal = ROUND_TRIP_MS;
        context.row({
          case: name,
          value,
          unit: "ms",
          against: `nominal: ${nominal}`,
          ratio: value / nominal,
        });
      }
      const ends: Ends = {
        kind: "redis",
        far: { kind: "redis", url: far, token: redis.token },
        near: { kind: "redis", url: redis.url, token: redis.token },
      };
      await zeroCost(context, ends);
      await tenMs(context, ends);
    } finally {
      await slow.stop();
      await redis.stop();
    }
    const server = await startNats();
    const slowNats = await startLink(server.webSocketPort, ONE_WAY_MS);
    try {
      const ends: Ends = {
        kind: "nats",
        far: { kind: "nats", url: `ws://127.0.0.1:${slowNats.port}` },
        near: { kind: "nats", url: server.url },
      };
      await zeroCost(context, ends);
      await tenMs(context, ends);
    } finally {
      await slowNats.stop();
      await server.stop();
    }
    context.note(
      "The link is a TCP proxy in a process of its own that hands each chunk on 5 ms after it came, in order, each way; any number can be under way. The queue is filled past it. Worker, link, gateway and Redis share two cores. The 10 ms jobs' share counts from the first handler's call to the last one's end, the growth of auto's first batches included.",
    );
  },
};
