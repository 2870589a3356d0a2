/**
 * `peek`: a look at jobs without taking them.
 *
 * @module
 */
import type { JobState } from "../../../src/broker.ts";
import { PEEK_FLAGS, peekAt } from "../peeking.ts";
import { defineQueueCommand } from "../queue_command.ts";

export default defineQueueCommand({
  name: "peek",
  summary: "Look at jobs without taking them",
  about: "Shows jobs in the order they would be handed out.",
  flags: {
    state: { kind: "choice", of: ["ready", "delayed", "held", "dead"], default: "ready", help: "which jobs" },
    ...PEEK_FLAGS,
  },
  run: (at, { flags }) => peekAt(flags.state as JobState, at, flags),
});
