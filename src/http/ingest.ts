/**
 * Taking in jobs line by line (NDJSON): each line is one job's body, exactly as it stands. A line that does not fit is named and left out; the
 * rest is not affected.
 *
 * @module
 */
import type { Priority } from "../broker.ts";
import { BrokerError, EnqueueError } from "../errors.ts";
import type { Producer } from "../producer.ts";
import type { QueueDefinition } from "../queue.ts";
import { whyUnfit, withoutSchema } from "./check.ts";
import { type Line, LineSplitter } from "./ndjson.ts";

export interface AcceptedLine {
  readonly line: number;
  /** Unknown when the broker failed after it had taken the line. */
  readonly id: string | undefined;
  /** True when a job of that id was there already. */
  readonly duplicate: boolean;
}

export interface RejectedLine {
  readonly line: number;
  /** Why; holds nothing of the line itself. */
  readonly reason: string;
}

/** Why the rest was not taken. */
export interface IngestFailure {
  readonly error: BrokerError | EnqueueError;
  /** Lines of which it is not known whether they are in the queue. */
  readonly uncertain: readonly number[];
  /** The first line that was surely not sent: where to go on from once the uncertain ones are dealt with. */
  readonly unsentFrom: number;
}

/** What became of the lines of one stretch of the input. */
export interface IngestStep {
  readonly accepted: readonly AcceptedLine[];
  readonly rejected: readonly RejectedLine[];
  /** Set in the last step when the broker failed. */
  readonly failed?: IngestFailure;
}

export interface IngestOptions {
  readonly producer: Producer;
  readonly queue: QueueDefinition;
  /** The longest line, in bytes. */
  readonly maxBodyBytes: number;
  /** Whose limit that is and how it is raised, to follow its number; empty where that is plain. */
  readonly limitNote?: string;
  /**
   * Names the jobs: that of line N has the id `IDS.N`, so that all of it can be sent again after its answer was lost, and only what is missing is added. By default
   * each gets an id of its own.
   */
  readonly ids?: string | undefined;
  /** For every job of the input. */
  readonly job?: {
    readonly delayMs?: number;
    readonly priority?: Priority;
    readonly headers?: Record<string, string>;
  };
}

/** The id of a line's job, where they are named. */
export function lineId(ids: string, line: number): string {
  return `${ids}.${line}`;
}

/** The most lines of one step, so that progress shows and limits bite in the middle of a large chunk too. */
const LINES_A_STEP = 1_000;

/**
 * Enqueues a stream of lines. Each chunk's lines are enqueued before the next chunk is asked for, so the source is never read faster than the broker
 * takes, and a slow source's lines do not wait for a batch to fill. Ends after a step that failed.
 */
export async function* ingestLines(
  chunks: AsyncIterable<Uint8Array>,
  options: IngestOptions,
): AsyncGenerator<IngestStep> {
  const splitter = new LineSplitter(options.maxBodyBytes);
  for await (const chunk of chunks) {
    const lines = splitter.push(chunk);
    for (let from = 0; from < lines.length; from += LINES_A_STEP) {
      const some = lines.slice(from, from + LINES_A_STEP);
      const step = await enqueueLines(some, some.at(-1)!.number + 1, options);
      yield step;
      if (step.failed !== undefined) return;
    }
  }
  const last = splitter.end();
  if (last.length > 0) yield await enqueueLines(last, splitter.lineNumber, options);
}

async function enqueueLines(
  lines: readonly Line[],
  nextLine: number,
  options: IngestOptions,
): Promise<IngestStep> {
  const rejected: RejectedLine[] = [];
  const fit: { number: number; bytes: Uint8Array }[] = [];
  for (const line of lines) {
    const reason = line.tooLong
      ? `The body is above the limit of ${options.maxBodyBytes} bytes${options.limitNote ?? ""}`
      : await whyUnfit(options.queue, line.bytes);
    if (reason !== undefined) rejected.push({ line: line.number, reason });
    else if (line.bytes !== undefined) fit.push({ number: line.number, bytes: line.bytes });
  }
  if (fit.length === 0) return { accepted: [], rejected };
  const idOf = (line: number) => (options.ids === undefined ? undefined : lineId(options.ids, line));
  try {
    const results = await options.producer.enqueueRaw(
      withoutSchema(options.queue),
      fit.map(({ bytes, number }) => {
        const id = idOf(number);
        return { body: bytes, ...options.job, ...(id === undefined ? {} : { id }) };
      }),
    );
    return { accepted: fit.map((line, i) => ({ line: line.number, ...results[i]! })), rejected };
  } catch (error) {
    if (!(error instanceof EnqueueError || error instanceof BrokerError)) throw error;
    // Which ids the accepted ones were given is lost with the reply, if nobody chose them; that they are in is known.
    // Where nothing was enqueued at all, as to a queue that cannot be opened, nothing is in for sure.
    const { accepted: taken, uncertain: unsure } =
      error instanceof EnqueueError ? error : { accepted: 0, uncertain: 0 };
    const uncertain = fit.slice(taken, taken + unsure).map((line) => line.number);
    return {
      accepted: fit
        .slice(0, taken)
        .map((line) => ({ line: line.number, id: idOf(line.number), duplicate: false })),
      rejected,
      failed: { error, uncertain, unsentFrom: fit[taken + unsure]?.number ?? nextLine },
    };
  }
}
