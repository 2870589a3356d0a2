/**
 * How the HTTP app says no: one shape for all, `{ "error": SENTENCE, "code": WORD, … }`, and never a body, a token or a stack in it.
 *
 * @module
 */
import type { Context } from "hono";
import { BrokerError, BrokerRefusedError, EnqueueError, InvalidBodyError } from "../errors.ts";
import type { LogSink } from "../job.ts";

/** The status codes that the app refuses with. */
export type RefusalStatus = 400 | 401 | 403 | 404 | 405 | 409 | 413 | 415 | 422 | 501 | 503;

/** A request that is answered with a refusal. Its message and data go to the caller as they are. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly status: RefusalStatus;
  readonly code: string;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(
    status: RefusalStatus,
    code: string,
    message: string,
    data: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.data = data;
  }
}

/** What a broker's failure is told as. Texts of these errors carry no payload and no credentials, by the port's contract. */
export function brokerRefusal(
  error: BrokerError | EnqueueError,
  data: Record<string, unknown> = {},
): Refusal {
  // Sent again it would be as large.
  if (error.cause instanceof RangeError) return new Refusal(413, "too-large", error.message, data);
  const code = error instanceof BrokerRefusedError ? "broker-refused" : "broker-failed";
  return new Refusal(503, code, error.message, data);
}

/** Makes an error handler for the app. What nobody foresaw is told in general words only, and logged by its kind and place. */
export function answerErrors(log: LogSink | undefined): (error: Error, c: Context) => Response {
  return (error, c) => {
    const refusal = refusalOf(error);
    if (refusal !== undefined) {
      if (refusal.status === 401) c.header("WWW-Authenticate", "Bearer");
      if (refusal.status === 405) c.header("Allow", (refusal.data.allow as string[]).join(", "));
      return c.json({ error: refusal.message, code: refusal.code, ...refusal.data }, refusal.status);
    }
    log?.("error", "A request failed inside the server", {
      kind: error.name,
      method: c.req.method,
      at: placesOf(error),
    });
    return c.json(
      { error: "The request failed inside the server; its log has the place", code: "internal" },
      500,
    );
  };
}

/** The refusal that an error is told as; nothing of one that nobody foresaw. */
function refusalOf(error: Error): Refusal | undefined {
  if (error instanceof Refusal) return error;
  if (error instanceof InvalidBodyError) return new Refusal(422, "invalid-body", error.reason);
  return error instanceof BrokerError || error instanceof EnqueueError ? brokerRefusal(error) : undefined;
}

/** The stack's places without the message, which could quote what was sent. */
function placesOf(error: Error): string {
  const stack = error.stack ?? "";
  const message = stack.indexOf(error.message);
  return stack
    .slice(message < 0 ? 0 : message + error.message.length)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line.startsWith("at "))
    .slice(0, 5)
    .join(" < ");
}
