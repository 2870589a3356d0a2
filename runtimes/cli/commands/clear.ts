/**
 * `clear`: remove jobs for good.
 *
 * @module
 */
import { UsageError } from "../flags.ts";
import { defineQueueCommand } from "../queue_command.ts";

const STATES = ["ready", "delayed", "dead"] as const;

export default defineQueueCommand({
  name: "clear",
  needs: "--state STATE",
  summary: "Remove the jobs of a state for good",
  about: `Removes every job of the states named; there is no default, for nothing brings them back.
Jobs that run finish as they would have.`,
  flags: { state: { kind: "list", value: STATES.join("|"), of: STATES, help: "which jobs to remove" } },
  check({ flags }) {
    if (flags.state.length > 0) return;
    throw new UsageError(
      `Cannot clear: --state is missing; say which jobs are to be removed: ${STATES.join(", ")}`,
    );
  },
  async run({ queue, able, tell }, { flags }) {
    const cleared = await able("clear", queue.clear)(STATES.filter((state) => flags.state.includes(state)));
    tell(`Removed: ${cleared}`, { cleared });
    return 0;
  },
});
