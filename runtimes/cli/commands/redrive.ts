/**
 * `redrive`: dead letters back into the queue.
 *
 * @module
 */
import {
  ANY_QUEUE_FLAG,
  BROKER_FLAG,
  BROKER_HELP,
  defineCommand,
  JSON_FLAG,
  WORKER_FLAG,
} from "../command.ts";
import { UsageError } from "../flags.ts";
import { printable } from "../printable.ts";
import { offered, withQueue } from "../queues.ts";

/** How many are put back at the most when nothing says how many. */
const MOST = 1_000_000;

export default defineCommand({
  name: "redrive",
  args: "QUEUE [ID…]",
  summary: "Put dead letters back into the queue",
  about: `Puts back the dead letters with these ids, or all, oldest first, with no attempt charged.
An ID that is no dead letter's is named on standard error; the others are put back.

Exit code: 0, or 1 when an ID was no dead letter's or the broker failed, 2 when the command was called wrongly.

${BROKER_HELP}`,
  flags: {
    broker: BROKER_FLAG,
    worker: WORKER_FLAG,
    "any-queue": ANY_QUEUE_FLAG,
    limit: {
      kind: "count",
      unit: "jobs",
      least: 1,
      help: `how many at the most where no ID is given; ${MOST} without it`,
    },
    json: JSON_FLAG,
  },
  async run(context, args) {
    const ids = new Set(args.positionals.slice(1));
    const { limit, json } = args.flags;
    if (ids.size > 0 && limit !== undefined) {
      throw new UsageError("Cannot use --limit: each ID names one dead letter; leave it or the IDs out");
    }
    return await withQueue(context, args, { most: Number.POSITIVE_INFINITY }, async (opened, broker) => {
      const redrive = offered(broker, opened, "redrive", opened.redrive);
      let redriven = ids.size > 0 ? 0 : await redrive({ limit: limit ?? MOST });
      // One by one, for a broker answers only how many it put back, and it must be said which were not there.
      const absent: string[] = [];
      for (const id of ids) {
        const count = await redrive({ ids: [id], limit: 1 });
        redriven += count;
        if (count > 0) continue;
        absent.push(id);
        context.io.err(`Not put back: ${printable(id)} is no dead letter`);
      }
      const report = { queue: opened.name, redriven, ...(ids.size > 0 ? { absent } : {}) };
      context.io.out(json ? JSON.stringify(report) : `Put back: ${redriven}`);
      return absent.length > 0 ? 1 : 0;
    });
  },
});
