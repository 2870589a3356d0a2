/**
 * `enqueue`: jobs from arguments or from NDJSON on standard input.
 *
 * @module
 */
import { isHeaderName, isHeaderValue, isJobId, type Priority } from "../../../src/broker.ts";
import { whyUnfit, withoutSchema } from "../../../src/http/check.ts";
import { ingestLines, lineId } from "../../../src/http/ingest.ts";
import { Producer } from "../../../src/producer.ts";
import type { QueueDefinition } from "../../../src/queue.ts";
import type { BrokerSpec } from "../broker_spec.ts";
import {
  ANY_QUEUE_FLAG,
  BROKER_FLAG,
  BROKER_HELP,
  type Context,
  defineCommand,
  FAILED_HELP,
  JSON_FLAG,
  WORKER_FLAG,
} from "../command.ts";
import { UsageError } from "../flags.ts";
import { InputError } from "../io.ts";
import { printable } from "../printable.ts";
import { defineQueue, knownWorker, openQueue, withBroker } from "../queues.ts";
import { StoppedError, unlessStopped } from "../stopped.ts";

/** How many ids the summary holds at the most where the jobs come from standard input, which may go on forever. */
const MOST_IDS = 1_000;

interface JobFlags {
  readonly delayMs?: number;
  readonly priority?: Priority;
  readonly headers?: Record<string, string>;
}

export default defineCommand({
  name: "enqueue",
  args: "QUEUE [BODY…]",
  summary: "Put jobs into a queue",
  about: `Each BODY is one job. Without any, each line of standard input is one (NDJSON); a line that does not fit is named on standard
error and left out, the rest goes on. Bodies arrive exactly as they stand. A BODY that begins with - comes after --, behind the flags.
Standard output gets a summary, with the id of a single job; with --json it has the ids of all jobs that were accepted or
there already, in their order, of standard input's the first ${MOST_IDS.toLocaleString("en")}.`,
  exits: {
    0: "everything was accepted",
    1: `something was not accepted, or standard input held no job at all; or ${FAILED_HELP}`,
    "130, 143": "SIGINT or SIGTERM came before the end of standard input; what was read is told",
  },
  notes: BROKER_HELP,
  flags: {
    broker: BROKER_FLAG,
    worker: WORKER_FLAG,
    "any-queue": ANY_QUEUE_FLAG,
    codec: {
      kind: "choice",
      of: ["json", "text"],
      help: "what a body must be; only where no worker is known, whose queues say it; default json",
    },
    id: {
      kind: "text",
      value: "ID",
      help: "the job's id: a second job of that id is left out; for one BODY only",
    },
    ids: {
      kind: "text",
      value: "PREFIX",
      help: "names the jobs of standard input, line N's PREFIX.N: sent again, it adds only what is missing",
    },
    "delay-ms": {
      kind: "count",
      unit: "milliseconds",
      least: 0,
      help: "how long the job waits before it can be claimed; default 0",
    },
    priority: {
      kind: "choice",
      of: ["high", "normal", "low"],
      default: "normal",
      help: "which jobs go first",
    },
    header: { kind: "list", value: "NAME=VALUE", help: "a header that travels with the job" },
    "max-body-bytes": {
      kind: "count",
      unit: "bytes",
      least: 1,
      default: 1_048_576,
      help: "the largest body; the broker may take less",
    },
    json: JSON_FLAG,
  },
  async run(context, { flags, positionals }) {
    const [name, ...bodies] = positionals;
    if (flags.worker !== undefined && flags.codec !== undefined) {
      throw new UsageError(
        "Cannot use --codec with --worker: the worker's queue says how its bodies are read; leave it out",
      );
    }
    const known = await knownWorker(flags, context);
    if (known?.found !== undefined && flags.codec !== undefined) {
      throw new UsageError(
        `Cannot use --codec: the queue in ${known.found} says how its bodies are read; leave it out, or give --any-queue`,
      );
    }
    const worker = known?.definition;
    const codec = flags.codec === "text" ? "text" : "json";
    const definition = defineQueue(name, worker, { codec, found: known?.found });
    const job: JobFlags = {
      ...(flags["delay-ms"] === undefined ? {} : { delayMs: flags["delay-ms"] }),
      priority: flags.priority as Priority,
      headers: readHeaders(flags.header),
    };
    if (flags.id !== undefined && !isJobId(flags.id)) {
      throw new UsageError(
        "Cannot use --id: it does not fit; use 1 to 200 printable ASCII characters without space and |",
      );
    }
    if (flags.ids !== undefined && flags.id !== undefined) {
      throw new UsageError(
        "Cannot use --ids with --id: one names lines, the other names one BODY; leave one out",
      );
    }
    if (flags.id !== undefined && bodies.length !== 1) {
      throw new UsageError(
        bodies.length === 0
          ? "Cannot use --id: one id names one job; give exactly one BODY, or name the lines of standard input by --ids"
          : "Cannot use --id: one id names one job; give exactly one BODY",
      );
    }
    if (flags.ids !== undefined) assertNames(flags.ids, bodies.length);
    if (bodies.length === 0 && context.io.stdinIsTerminal) {
      throw new UsageError("Cannot enqueue: there is no BODY; give some, or NDJSON on standard input");
    }
    return await withBroker(
      context,
      flags.broker,
      async (broker, spec) => {
        if (spec.kind === "memory") {
          throw new UsageError(
            "Cannot enqueue into memory:: the jobs would end with this command; name another broker",
          );
        }
        const opened = await openQueue(broker, definition, worker, true);
        const maxBodyBytes = Math.min(flags["max-body-bytes"], opened.limits.maxBodyBytes);
        const limitNote = noteOfLimit(spec.kind, flags["max-body-bytes"], opened.limits.maxBodyBytes);
        const producer = new Producer({ broker, platform: context.platform });
        const source = {
          context,
          producer,
          definition,
          maxBodyBytes,
          limitNote,
          job,
          ids: flags.ids,
          json: flags.json,
        };
        return bodies.length > 0 ? await fromArguments(source, bodies, flags.id) : await fromInput(source);
      },
      // "Accepted" is this command's promise, and a broker that can forget what it took breaks it: whoever sends is told, not only whoever works.
      (text) => context.io.err(printable(text)),
    );
  },
});

interface Source {
  readonly context: Context;
  readonly producer: Producer;
  readonly definition: QueueDefinition;
  readonly maxBodyBytes: number;
  readonly limitNote: string;
  readonly job: JobFlags;
  /** What the ids of lines begin with. */
  readonly ids: string | undefined;
  readonly json: boolean;
}

/** What became of the jobs. */
interface Sums {
  accepted: number;
  duplicates: number;
  rejected: number;
  /** Those of the jobs accepted or there already, as far as they are known. */
  readonly ids: string[];
  /** The last line of standard input of which it is known what became of it. */
  lastLine: number;
}

async function fromArguments(
  source: Source,
  bodies: readonly string[],
  id: string | undefined,
): Promise<number> {
  const { context, producer, definition, maxBodyBytes, limitNote, job } = source;
  const fit: string[] = [];
  let rejected = 0;
  for (const [i, body] of bodies.entries()) {
    const tooLong = new TextEncoder().encode(body).byteLength > maxBodyBytes;
    const why = tooLong
      ? `The body is above the limit of ${maxBodyBytes} bytes${limitNote}`
      : await whyUnfit(definition, body);
    if (why === undefined) fit.push(body);
    else {
      rejected += 1;
      context.io.err(`body ${i + 1}: ${printable(why)}`);
    }
  }
  const named = id === undefined ? {} : { id };
  const results = await producer.enqueueRaw(
    withoutSchema(definition),
    fit.map((body) => ({ body, ...job, ...named })),
  );
  const duplicates = results.filter((result) => result.duplicate).length;
  const ids = results.map((result) => result.id);
  return summarise(source, { accepted: results.length - duplicates, duplicates, rejected, ids });
}

async function fromInput(source: Source): Promise<number> {
  const sums: Sums = { accepted: 0, duplicates: 0, rejected: 0, ids: [], lastLine: 0 };
  let whole = false;
  try {
    whole = await takeIn(source, sums);
  } catch (error) {
    if (error instanceof StoppedError) {
      source.context.io.err(error.message);
      source.context.io.err(`Not sent: line ${sums.lastLine + 1} and all after it.`);
      summarise(source, sums);
      return error.code;
    }
    if (!(error instanceof InputError)) throw error;
    source.context.io.err(error.message);
  }
  const none = sums.accepted + sums.duplicates + sums.rejected === 0;
  if (whole && none) {
    source.context.io.err("Cannot enqueue: standard input is empty; give a BODY or a job a line");
  }
  const code = summarise(source, sums);
  return whole && !none ? code : 1;
}

/** Enqueues the lines of standard input and counts what became of them; answers whether it came to their end. */
async function takeIn(source: Source, sums: Sums): Promise<boolean> {
  const { io, platform } = source.context;
  const input = unlessStopped(io.stdin(), platform, "before the end of standard input");
  for await (const step of ingestLines(input, { ...source, queue: source.definition })) {
    for (const { line } of [...step.rejected, ...step.accepted])
      sums.lastLine = Math.max(sums.lastLine, line);
    for (const line of step.rejected) io.err(`line ${line.line}: ${printable(line.reason)}`);
    sums.rejected += step.rejected.length;
    for (const line of step.accepted) {
      if (line.duplicate) sums.duplicates += 1;
      else sums.accepted += 1;
      if (line.id !== undefined && sums.ids.length < MOST_IDS) sums.ids.push(line.id);
    }
    io.progress(
      `${sums.accepted.toLocaleString("en")} accepted, ${sums.rejected.toLocaleString("en")} rejected`,
    );
    if (step.failed !== undefined) {
      const { error, uncertain, unsentFrom } = step.failed;
      io.err(printable(error.message));
      if (uncertain.length > 0) {
        io.err(
          `Of the lines ${uncertain[0]} to ${uncertain.at(-1)} it is not known whether they are in the queue.`,
        );
      }
      io.err(`Not sent: line ${unsentFrom} and all after it.`);
      return false;
    }
  }
  return true;
}

function summarise(source: Source, { accepted, duplicates, rejected, ids }: Omit<Sums, "lastLine">): number {
  const { io } = source.context;
  if (source.json) io.out(JSON.stringify({ accepted, duplicates, rejected, ids }));
  else {
    const twice = duplicates === 0 ? "" : `, ${duplicates} there already`;
    const single = accepted === 1 && ids.length === 1 ? ` (id ${printable(ids[0]!)})` : "";
    io.out(`${source.definition.name}: ${accepted} accepted${twice}, ${rejected} rejected${single}`);
  }
  return rejected > 0 ? 1 : 0;
}

/** Whether each line can have an id that begins so, however many there are. */
function assertNames(ids: string, bodies: number): void {
  if (bodies > 0) {
    throw new UsageError(
      "Cannot use --ids: it names lines of standard input, and there are BODYs; name one BODY by --id",
    );
  }
  if (ids !== "" && isJobId(lineId(ids, Number.MAX_SAFE_INTEGER))) return;
  throw new UsageError(
    "Cannot use --ids: it does not fit; use 1 to 183 printable ASCII characters without space and |",
  );
}

function readHeaders(given: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const pair of given) {
    const at = pair.indexOf("=");
    const name = pair.slice(0, Math.max(at, 0)).toLowerCase();
    const value = pair.slice(at + 1);
    const unfit = whyNoHeader(at, name, value);
    if (unfit !== undefined) throw new UsageError(`Cannot use --header: ${unfit}`);
    // A name is safe to repeat: it is one by now, and no value.
    if (Object.hasOwn(headers, name)) {
      throw new UsageError(`Cannot use --header: ${name} is given twice; give each name once`);
    }
    headers[name] = value;
  }
  return headers;
}

/** What a header cannot be, in words that repeat neither name nor value. */
function whyNoHeader(at: number, name: string, value: string): string | undefined {
  if (at < 0) return "it has no =; write NAME=VALUE";
  if (!isHeaderName(name)) {
    const odd = /[^a-z0-9_-]/.exec(name)?.[0];
    const is = odd !== undefined && /[!-~]/.test(odd) ? `has a ${odd} in it` : "does not fit";
    return `its name ${is}; a name is 1 to 100 of a-z 0-9 _ - and begins with a letter or a digit`;
  }
  return isHeaderValue(value)
    ? undefined
    : "its value does not fit; give up to 4,000 printable ASCII characters";
}

/** Whose limit on bodies it is, and how it is raised. */
function noteOfLimit(kind: BrokerSpec["kind"], flag: number, broker: number): string {
  if (flag < broker) return ", which --max-body-bytes raises";
  if (kind === "nats") {
    return ": the server's max_payload (or the stream's max_msg_size) less 16 KiB for headers; raise it there, or store the data elsewhere and enqueue where";
  }
  return `, the most that the ${kind} broker takes; store the data elsewhere and enqueue where`;
}
