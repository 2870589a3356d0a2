/**
 * `POST /v1/queues/:queue/jobs`: one job, or many as NDJSON.
 *
 * @module
 */
import type { Context } from "hono";
import { Hono } from "hono/tiny";
import { isJobId } from "../broker.ts";
import { BrokerError } from "../errors.ts";
import type { Producer } from "../producer.ts";
import type { QueueDefinition } from "../queue.ts";
import { brokerRefusal, Refusal } from "./answers.ts";
import { chunksOf, readLimited } from "./body.ts";
import { isNoJson } from "./check.ts";
import { type AcceptedLine, ingestLines, lineId, type RejectedLine } from "./ingest.ts";
import { JOB_OPTIONS_FORM, jobOptionsOf } from "./job_options.ts";
import { DO, onlyParameters, refuseOtherMethods } from "./known.ts";
import type { QueueRegistry } from "./registry.ts";

export interface EnqueueRouteOptions {
  readonly registry: QueueRegistry;
  readonly producer: Producer;
  /** The largest body of one job, in bytes. */
  readonly maxBodyBytes: number;
  /** The largest NDJSON request, in bytes. */
  readonly maxRequestBytes: number;
  /** The most lines of one NDJSON request. */
  readonly maxLines: number;
}

/** What became of lines of which none was read: told as of those that were. */
const NO_LINE_SENT = { uncertain: [], unsentFrom: 1, accepted: [], rejected: [] };

/** The routes that take jobs in. */
export function enqueueRoutes(options: EnqueueRouteOptions): Hono {
  const routes = new Hono();
  routes.post("/queues/:queue/jobs", async (c) => {
    const queue = options.registry.define(c.req.param("queue"));
    onlyParameters(c, [], JOB_OPTIONS_FORM);
    const encoding = c.req.header("content-encoding") ?? "identity";
    if (encoding !== "identity") {
      throw new Refusal(415, "encoded", "Cannot take the body: it is compressed; send it as it is");
    }
    const many = isNdjson(c.req.header("content-type"));
    const { limits } = await options.registry.open(queue.name).catch((error: unknown) => {
      throw many && error instanceof BrokerError ? brokerRefusal(error, NO_LINE_SENT) : error;
    });
    const maxBodyBytes = Math.min(options.maxBodyBytes, limits.maxBodyBytes);
    return many
      ? await enqueueMany(c, queue, maxBodyBytes, options)
      : await enqueueOne(c, queue, maxBodyBytes, options);
  });
  refuseOtherMethods(routes, "/queues/:queue/jobs", DO);
  return routes;
}

function isNdjson(contentType: string | undefined): boolean {
  const type = contentType?.split(";")[0]?.trim().toLowerCase();
  return type === "application/x-ndjson" || type === "application/ndjson";
}

async function enqueueOne(
  c: Context,
  queue: QueueDefinition,
  maxBodyBytes: number,
  options: EnqueueRouteOptions,
): Promise<Response> {
  const job = jobOptionsOf(c.req.raw.headers);
  const body = await readLimited(c.req.raw, maxBodyBytes);
  const [result] = await options.producer.enqueueRaw(queue, [{ body, ...job }]);
  return c.json(result!, result!.duplicate ? 200 : 201);
}

async function enqueueMany(
  c: Context,
  queue: QueueDefinition,
  maxBodyBytes: number,
  options: EnqueueRouteOptions,
): Promise<Response> {
  const { id, ...job } = jobOptionsOf(c.req.raw.headers);
  if (id !== undefined && !isJobId(lineId(id, options.maxLines))) {
    throw new Refusal(
      400,
      "invalid-header",
      "Cannot use the header eddy-id: it is too long to have each line's number behind it; use a shorter one",
    );
  }
  const accepted: AcceptedLine[] = [];
  const rejected: RejectedLine[] = [];
  const lines = ingestLines(limitedChunks(c.req.raw, options.maxRequestBytes), {
    producer: options.producer,
    queue,
    maxBodyBytes,
    ids: id,
    job,
  });
  try {
    for await (const step of lines) {
      for (const line of step.accepted) accepted.push(line);
      for (const line of step.rejected) rejected.push(line);
      if (step.failed !== undefined) {
        const { error, uncertain, unsentFrom } = step.failed;
        throw brokerRefusal(error, { uncertain, unsentFrom });
      }
      if (accepted.length + rejected.length > options.maxLines) {
        throw new Refusal(
          413,
          "too-large",
          `Cannot take more lines: the limit is ${options.maxLines} a request`,
        );
      }
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    // What was taken before is told too: it is in the queue.
    const unsentFrom = 1 + Math.max(accepted.at(-1)?.line ?? 0, rejected.at(-1)?.line ?? 0);
    throw new Refusal(error.status, error.code, error.message, {
      unsentFrom,
      ...error.data,
      accepted,
      rejected,
    });
  }
  const status = rejected.length === 0 ? 200 : accepted.length === 0 ? 422 : 207;
  const [only] = rejected;
  // Several jobs on one line are no JSON, and mostly come of a client that took the line ends out.
  const joined = accepted.length === 0 && rejected.length === 1 && only?.line === 1 && isNoJson(only.reason);
  return c.json({ accepted, rejected, ...(joined ? { hint: JOINED } : {}) }, status);
}

const JOINED =
  "The request is one line: if it was more, its line ends got lost; with curl send it by --data-binary in place of -d";

async function* limitedChunks(request: Request, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of chunksOf(request)) {
    size += chunk.byteLength;
    if (size > maxBytes) {
      throw new Refusal(413, "too-large", `Cannot take more lines: the limit is ${maxBytes} bytes a request`);
    }
    yield chunk;
  }
}
