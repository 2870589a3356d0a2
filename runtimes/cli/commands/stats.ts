/**
 * `stats`: how many jobs are where.
 *
 * @module
 */
import { BROKER_FLAG, BROKER_HELP, defineCommand, FAILED_HELP, JSON_FLAG } from "../command.ts";
import { loadWorker } from "../load_worker.ts";
import { printable } from "../printable.ts";
import { assertThere, defineQueue, offered, openQueue, withBroker } from "../queues.ts";
import { table } from "../table.ts";

export default defineCommand({
  name: "stats",
  args: "[QUEUE…]",
  summary: "Show the sizes of queues",
  about: `Shows the queues named, else those of the worker (--worker, else ./worker.ts, else, in Eddy's own checkout, the example).
A queue that nobody has used yet shows 0 everywhere.`,
  exits: { 0: "the sizes were shown", 1: FAILED_HELP },
  notes: BROKER_HELP,
  flags: {
    broker: BROKER_FLAG,
    worker: { kind: "text", value: "FILE", help: "the worker whose queues are shown when none is named" },
    json: JSON_FLAG,
  },
  async run(context, { flags, positionals }) {
    const worker =
      positionals.length > 0 && flags.worker === undefined
        ? undefined
        : (await loadWorker(flags.worker, context, "--worker")).definition;
    const names =
      positionals.length > 0
        ? new Set(positionals)
        : (worker?.queues.map((one) => one.handler.queue.name) ?? []);
    return await withBroker(context, flags.broker, async (broker, spec) => {
      assertThere(spec);
      const rows = [];
      for (const name of names) {
        const definition = defineQueue(name, worker);
        const opened = await openQueue(broker, definition, worker);
        rows.push({ queue: name, ...(await offered(broker, opened, "tell sizes", opened.sizes)()) });
      }
      if (flags.json) context.io.out(JSON.stringify(rows));
      else {
        const cells = rows.map((row) => [
          printable(row.queue),
          row.ready,
          row.delayed,
          row.held,
          row.dead,
          row.paused ? "paused" : "",
        ]);
        for (const line of table(["queue", "ready", "delayed", "held", "dead", ""], cells))
          context.io.out(line);
      }
      return 0;
    });
  },
});
