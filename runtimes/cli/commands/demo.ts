/**
 * `demo`: how a worker sizes its claims, on whichever broker is named.
 *
 * @module
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { prefetchDemo } from "../../../examples/prefetch.ts";
import { describeBroker } from "../broker_spec.ts";
import { BROKER_HELP, defineCommand, FAILED_HELP, SIGNAL_EXITS } from "../command.ts";
import { UsageError } from "../flags.ts";
import { withBroker } from "../queues.ts";

export default defineCommand({
  name: "demo",
  args: "",
  summary: "Watch how a worker sizes its claims, and check it",
  about: `Works off three backlogs with one slot: 40 jobs of 10 ms one by one, 200 jobs of 10 ms in batches that size themselves, and 10 jobs of
300 ms. Each gets a queue of its own, which is cleared at the end; on NATS its two streams stay, empty. Takes about seven seconds.`,
  exits: {
    0: "every check held",
    1: `a check did not hold, or it was stopped; or ${FAILED_HELP}`,
    ...SIGNAL_EXITS,
  },
  notes: `${BROKER_HELP}
The demo alone takes a SQLite file in a temporary folder when neither --broker nor a variable names a broker.`,
  flags: {
    broker: {
      kind: "text",
      value: "BROKER",
      help: "which broker; without it as said above, and a temporary file at last",
    },
  },
  async run(context, { flags, positionals }) {
    if (positionals.length > 0) throw new UsageError("Cannot read the arguments: the demo takes flags alone");
    const { io, platform, env } = context;
    const named = flags.broker ?? (env.EDDY_BROKER || env.UPSTASH_REDIS_REST_URL);
    const folder = named ? undefined : await mkdtemp(join(tmpdir(), "eddy-demo-"));
    const flag = folder === undefined ? flags.broker : `sqlite:${join(folder, "demo.sqlite")}`;
    const stop = new AbortController();
    const forget = platform.onStop((reason) =>
      stop.abort(new RangeError(`Cannot finish the demo: ${reason} came`)),
    );
    try {
      return await withBroker(context, flag, async (broker, spec) => {
        io.out(`broker: ${folder === undefined ? describeBroker(spec) : "sqlite, in a temporary file"}`);
        const print = (line: string) => io.out(line);
        return (await prefetchDemo({ broker, platform, print, signal: stop.signal })) ? 0 : 1;
      });
    } finally {
      forget();
      if (folder !== undefined) await rm(folder, { recursive: true, force: true });
    }
  },
});
