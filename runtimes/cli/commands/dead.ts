/**
 * `dead`: a look at the dead letters.
 *
 * @module
 */
import { BROKER_HELP, defineCommand } from "../command.ts";
import { PEEK_FLAGS, peekAt } from "../peeking.ts";

export default defineCommand({
  name: "dead",
  args: "QUEUE",
  summary: "Look at dead letters and their reasons",
  about: `Shows the oldest first. \`redrive\` puts them back into the queue, \`clear --state dead\` removes them.

${BROKER_HELP}`,
  flags: PEEK_FLAGS,
  run: (context, args) => peekAt("dead", context, args),
});
