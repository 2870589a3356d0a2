/**
 * `peek`: a look at jobs without taking them.
 *
 * @module
 */
import type { JobState } from "../../../src/broker.ts";
import { BROKER_HELP, defineCommand } from "../command.ts";
import { PEEK_FLAGS, peekAt } from "../peeking.ts";

export default defineCommand({
  name: "peek",
  args: "QUEUE",
  summary: "Look at jobs without taking them",
  about: `Shows jobs in the order they would be handed out.

${BROKER_HELP}`,
  flags: {
    state: { kind: "choice", of: ["ready", "delayed", "held", "dead"], default: "ready", help: "which jobs" },
    ...PEEK_FLAGS,
  },
  run: (context, args) => peekAt(args.flags.state as JobState, context, args),
});
