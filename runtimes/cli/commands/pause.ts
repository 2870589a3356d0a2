/**
 * `pause`.
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
import { offered, withQueue } from "../queues.ts";

export default defineCommand({
  name: "pause",
  args: "QUEUE",
  summary: "Let no job of a queue be claimed until resumed",
  about: `Jobs that run go on; jobs can be enqueued all the while. A pause outlives restarts,
and holds from the first job on where the queue is not there yet.

${BROKER_HELP}`,
  flags: { broker: BROKER_FLAG, worker: WORKER_FLAG, "any-queue": ANY_QUEUE_FLAG, json: JSON_FLAG },
  async run(context, args) {
    return await withQueue(context, args, { makes: true }, async (opened, broker) => {
      await offered(broker, opened, "pause", opened.pause)();
      context.io.out(
        args.flags.json ? JSON.stringify({ queue: opened.name, paused: true }) : `${opened.name} is paused`,
      );
      return 0;
    });
  },
});
