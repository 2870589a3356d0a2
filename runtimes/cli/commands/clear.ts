/**
 * `clear`: remove jobs for good.
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
import { offered, withQueue } from "../queues.ts";

const STATES = ["ready", "delayed", "dead"] as const;

export default defineCommand({
  name: "clear",
  args: "QUEUE --state STATE",
  summary: "Remove the jobs of a state for good",
  about: `Removes every job of the states named; there is no default, for nothing brings them back.
Jobs that run finish as they would have.

${BROKER_HELP}`,
  flags: {
    state: { kind: "list", value: STATES.join("|"), help: "which jobs to remove" },
    broker: BROKER_FLAG,
    worker: WORKER_FLAG,
    "any-queue": ANY_QUEUE_FLAG,
    json: JSON_FLAG,
  },
  async run(context, args) {
    const states = args.flags.state.map((given) => {
      const state = STATES.find((one) => one === given);
      if (state === undefined) {
        throw new UsageError(
          `Cannot read the arguments: --state does not fit; give one of ${STATES.join(", ")}`,
        );
      }
      return state;
    });
    if (states.length === 0) {
      throw new UsageError("Cannot clear: --state is missing; say which jobs are to be removed");
    }
    return await withQueue(context, args, {}, async (opened, broker) => {
      const cleared = await offered(broker, opened, "clear", opened.clear)(states);
      context.io.out(
        args.flags.json ? JSON.stringify({ queue: opened.name, cleared }) : `Removed: ${cleared}`,
      );
      return 0;
    });
  },
});
