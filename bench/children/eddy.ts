/**
 * Eddy at work: fills a queue, then lets one worker empty it, and tells how long that took.
 *
 * @module
 */
import { type Broker, defineWorker, type HandlerOptions, queue, startWorker } from "../../src/mod.ts";
import { type BrokerSpec, fill, openBroker, openQueue } from "../support/brokers.ts";
import { cpuMs, params, tell } from "../support/contender.ts";
import { collectGarbage, herePlatform, nextTurn, sleep, useSteadyWebSocket } from "../support/here.ts";

export interface EddyParams {
  readonly broker: BrokerSpec;
  /** How the queue is filled and the worker warmed up, where that is another way than the worker's: past a slow link. */
  readonly fillBy?: BrokerSpec;
  readonly jobs: number;
  /** Jobs of an earlier run in the same process that is not timed. */
  readonly warmUp: number;
  readonly handler: HandlerOptions;
  /** How long each job takes, waiting, in milliseconds; 0 for a handler that returns at once. */
  readonly jobMs: number;
}

export interface EddyResult {
  /** From the first handler's call until the broker had confirmed the last job, in milliseconds. */
  readonly ms: number;
  /** The processor time that this process used meanwhile, in milliseconds. */
  readonly cpuMs: number;
  readonly claims: number;
  /** The time handlers were running, summed up over the slots, in milliseconds. */
  readonly runningMs: number;
  /** From the first handler's call to the last one's end, in milliseconds. */
  readonly workMs: number;
  /** The worker's own view of a claim's round trip, in milliseconds. */
  readonly roundTripMs: number | undefined;
}

await useSteadyWebSocket();
const platform = await herePlatform();

interface Run {
  readonly broker: Broker;
  readonly fillBy: Broker;
  readonly name: string;
  readonly jobs: number;
  readonly jobMs: number;
  readonly handler: HandlerOptions;
}

async function run({ broker, fillBy, name, jobs, jobMs, handler }: Run): Promise<EddyResult> {
  await fill(await openQueue(fillBy, name), jobs);
  const ran = Promise.withResolvers<void>();
  let left = jobs;
  let firstAt = 0;
  let lastAt = 0;
  let runningMs = 0;
  let cpuBefore = 0;
  const start = () => {
    if (firstAt !== 0) return;
    cpuBefore = cpuMs();
    firstAt = performance.now();
  };
  const end = () => {
    left -= 1;
    if (left > 0) return;
    lastAt = performance.now();
    ran.resolve();
  };
  const instant = async () => {
    start();
    end();
  };
  const timed = async () => {
    start();
    const startedAt = performance.now();
    await sleep(jobMs);
    runningMs += performance.now() - startedAt;
    end();
  };
  const worker = await startWorker(
    defineWorker({ queues: [queue(name).handle(jobMs === 0 ? instant : timed, handler)] }),
    { broker, platform },
  );
  await ran.promise;
  const stats = () => worker.stats()[0];
  while ((stats()?.acked ?? 0) < jobs) await nextTurn();
  const ms = performance.now() - firstAt;
  const usedMs = cpuMs() - cpuBefore;
  const { claims = 0, roundTripMs } = stats() ?? {};
  await worker.stop();
  return { ms, cpuMs: usedMs, claims, runningMs, workMs: lastAt - firstAt, roundTripMs };
}

const { broker: spec, fillBy: nearSpec, jobs, warmUp, jobMs, handler } = params<EddyParams>();
const broker = await openBroker(spec, platform);
const near = nearSpec === undefined ? broker : await openBroker(nearSpec, platform);
const unique = crypto.randomUUID();
// What warms up is the code: no link is waited for, and no job takes its time.
if (warmUp > 0) {
  await run({ broker: near, fillBy: near, name: `warm-${unique}`, jobs: warmUp, jobMs: 0, handler });
}
collectGarbage();
tell(await run({ broker, fillBy: near, name: `work-${unique}`, jobs, jobMs, handler }));
