/**
 * `dead`: a look at the dead letters.
 *
 * @module
 */
import { PEEK_FLAGS, peekAt } from "../peeking.ts";
import { defineQueueCommand } from "../queue_command.ts";

export default defineQueueCommand({
  name: "dead",
  summary: "Look at dead letters and their reasons",
  about:
    "Shows the oldest first. `redrive` puts them back into the queue, `clear --state dead` removes them.",
  flags: PEEK_FLAGS,
  run: (at, { flags }) => peekAt("dead", at, flags),
});
