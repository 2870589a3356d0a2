/**
 * `resume`.
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
  name: "resume",
  args: "QUEUE",
  summary: "Let the jobs of a paused queue be claimed again",
  about: `Jobs that run go on; jobs can be enqueued all the while. A pause outlives restarts.

${BROKER_HELP}`,
  flags: { broker: BROKER_FLAG, worker: WORKER_FLAG, "any-queue": ANY_QUEUE_FLAG, json: JSON_FLAG },
  async run(context, args) {
    return await withQueue(context, args, {}, async (opened, broker) => {
      await offered(broker, opened, "resume", opened.resume)();
      context.io.out(
        args.flags.json ? JSON.stringify({ queue: opened.name, paused: false }) : `${opened.name} is resumed`,
      );
      return 0;
    });
  },
});
