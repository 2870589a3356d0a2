/**
 * `redrive`: dead letters back into the queue.
 *
 * @module
 */
import { MOST_REDRIVEN, redriveByIds } from "../../../src/http/redriving.ts";
import { UsageError } from "../flags.ts";
import { printable } from "../printable.ts";
import { defineQueueCommand } from "../queue_command.ts";

export default defineQueueCommand({
  name: "redrive",
  rest: "ID",
  summary: "Put dead letters back into the queue",
  about: `Puts back the dead letters with these ids, or all, oldest first, with no attempt charged.
An ID that is no dead letter's is named on standard error; the others are put back.`,
  exits: {
    1: "an ID was no dead letter's; or the broker failed or was refused, a variable or the worker's file could not be used, or output could not be written",
  },
  flags: {
    limit: {
      kind: "count",
      unit: "jobs",
      least: 1,
      help: `how many at the most where no ID is given; ${MOST_REDRIVEN} without it`,
    },
  },
  check({ flags, rest }) {
    if (rest.includes("")) throw new UsageError("Cannot redrive: an ID is empty; name a dead letter");
    if (rest.length === 0 || flags.limit === undefined) return;
    throw new UsageError("Cannot use --limit: the IDs say which dead letters; leave it or the IDs out");
  },
  async run({ queue, io, able, tell }, { flags, rest }) {
    const redrive = able("redrive", queue.redrive);
    if (rest.length === 0) {
      const redriven = await redrive({ limit: flags.limit ?? MOST_REDRIVEN });
      tell(`Put back: ${redriven}`, { redriven });
      return 0;
    }
    const { redriven, absent } = await redriveByIds(redrive, rest);
    for (const id of absent) io.err(`Not put back: ${printable(id)} is no dead letter`);
    tell(`Put back: ${redriven}`, { redriven, absent });
    return absent.length > 0 ? 1 : 0;
  },
});
