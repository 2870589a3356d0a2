/**
 * `redrive`: dead letters back into the queue.
 *
 * @module
 */
import { BROKER_FLAG, BROKER_HELP, defineCommand, JSON_FLAG, WORKER_FLAG } from "../command.ts";
import { offered, withQueue } from "../queues.ts";

export default defineCommand({
  name: "redrive",
  args: "QUEUE [ID…]",
  summary: "Put dead letters back into the queue",
  about: `Puts back the dead letters with these ids, or all, oldest first, with no attempt charged.

${BROKER_HELP}`,
  flags: {
    broker: BROKER_FLAG,
    worker: WORKER_FLAG,
    limit: { kind: "count", unit: "jobs", least: 1, default: 1_000_000, help: "how many at the most" },
    json: JSON_FLAG,
  },
  async run(context, args) {
    const [, ...ids] = args.positionals;
    const { limit, json } = args.flags;
    return await withQueue(context, args, Number.POSITIVE_INFINITY, async (opened, broker) => {
      const redrive = offered(broker, opened, "redrive", opened.redrive);
      const redriven = await redrive(ids.length > 0 ? { ids, limit } : { limit });
      context.io.out(json ? JSON.stringify({ queue: opened.name, redriven }) : `Put back: ${redriven}`);
      return 0;
    });
  },
});
