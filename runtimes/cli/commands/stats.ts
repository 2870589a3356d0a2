/**
 * `stats`: how many jobs are where.
 *
 * @module
 */
import type { Broker, QueueSizes } from "../../../src/broker.ts";
import { QueueAbsentError } from "../../../src/errors.ts";
import type { QueueDefinition } from "../../../src/queue.ts";
import type { WorkerDefinition } from "../../../src/worker.ts";
import {
  ANY_QUEUE_FLAG,
  BROKER_FLAG,
  BROKER_HELP,
  type Context,
  defineCommand,
  FAILED_HELP,
  JSON_FLAG,
} from "../command.ts";
import { UsageError } from "../flags.ts";
import { loadWorker } from "../load_worker.ts";
import { printable } from "../printable.ts";
import {
  assertThere,
  defineQueue,
  type KnownWorker,
  knownWorker,
  offered,
  openQueue,
  type QueueFlags,
  withBroker,
} from "../queues.ts";
import { table } from "../table.ts";

export default defineCommand({
  name: "stats",
  args: "[QUEUE…]",
  summary: "Show the sizes of queues",
  about: `Shows the queues named, else those of the worker (--worker, else ./worker.ts, else, in Eddy's own checkout, the example).
A queue that nobody has used yet shows 0 everywhere; on NATS it is "not there yet", and is not made.`,
  exits: { 0: "the sizes were shown", 1: FAILED_HELP },
  notes: BROKER_HELP,
  flags: {
    broker: BROKER_FLAG,
    worker: {
      kind: "text",
      value: "FILE",
      help: "the worker whose queues there are; all of them are shown when none is named",
    },
    "any-queue": ANY_QUEUE_FLAG,
    json: JSON_FLAG,
  },
  async run(context, { flags, positionals }) {
    const known = await workerOf(flags, positionals, context);
    const worker = known?.definition;
    const names =
      positionals.length > 0 ? positionals : (worker?.queues.map((one) => one.handler.queue.name) ?? []);
    const definitions = [...new Set(names)].map((name) => defineQueue(name, worker, { found: known?.found }));
    return await withBroker(context, flags.broker, async (broker, spec) => {
      assertThere(spec);
      const rows = [];
      for (const definition of definitions) {
        rows.push({ queue: definition.name, ...(await sizesOf(broker, definition, worker)) });
      }
      if (flags.json) context.io.out(JSON.stringify(rows));
      else {
        const cells = rows.map((row) => [
          printable(row.queue),
          row.ready,
          row.delayed,
          row.held,
          row.dead,
          row.absent ? "not there yet" : row.paused ? "paused" : "",
        ]);
        for (const line of table(["queue", "ready", "delayed", "held", "dead", ""], cells))
          context.io.out(line);
      }
      return 0;
    });
  },
});

interface Sizes extends QueueSizes {
  /** Whether the queue is not there; left out where it is, or where the broker cannot tell. */
  readonly absent?: true;
}

async function sizesOf(
  broker: Broker,
  definition: QueueDefinition,
  worker: WorkerDefinition | undefined,
): Promise<Sizes> {
  try {
    const opened = await openQueue(broker, definition, worker, false);
    return await offered(broker, opened, "tell sizes", opened.sizes)();
  } catch (error) {
    // One of a worker's queues may not have been used yet.
    if (!(error instanceof QueueAbsentError)) throw error;
    return { ready: 0, delayed: 0, held: 0, dead: 0, paused: false, absent: true };
  }
}

/** The worker whose queues there are. Without a QUEUE its queues are shown, so there has to be one. */
async function workerOf(
  flags: QueueFlags,
  named: readonly string[],
  context: Context,
): Promise<KnownWorker | undefined> {
  if (named.length > 0) return await knownWorker(flags, context);
  if (flags["any-queue"]) {
    throw new UsageError("Cannot use --any-queue: no QUEUE is named; name those to show");
  }
  return {
    definition: (await loadWorker(flags.worker, context, "--worker")).definition,
    found: undefined,
  };
}
