/**
 * A receiver of webhooks: checks each signature, keeps what it accepted, and refuses as the test says.
 *
 * @module
 */
import { createHmac, timingSafeEqual } from "node:crypto";

export interface Received {
  readonly delivery: string;
  readonly event: string;
  readonly body: Uint8Array;
}

export interface Sink extends AsyncDisposable {
  readonly url: string;
  /** What was accepted, each time it came. */
  readonly accepted: readonly Received[];
  /** How many requests came in all. */
  readonly requests: number;
  /** How many had no right signature; they are refused with 401. */
  readonly unsigned: number;
  /** The status for a request; 2xx accepts. By default 204. `seen` is how often this delivery came before. */
  decide: (received: Received, seen: number) => number | { status: number; headers: Record<string, string> };
}

export function startSink(secret: string): Sink {
  const accepted: Received[] = [];
  const seen = new Map<string, number>();
  const counts = { requests: 0, unsigned: 0 };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      counts.requests += 1;
      const body = new Uint8Array(await request.arrayBuffer());
      if (!isSigned(secret, body, request.headers.get("x-hub-signature-256"))) {
        counts.unsigned += 1;
        return new Response(null, { status: 401 });
      }
      const received = {
        delivery: request.headers.get("x-github-delivery") ?? "",
        event: request.headers.get("x-github-event") ?? "",
        body,
      };
      const before = seen.get(received.delivery) ?? 0;
      seen.set(received.delivery, before + 1);
      const decision = sink.decide(received, before);
      const { status, headers } = typeof decision === "number" ? { status: decision, headers: {} } : decision;
      if (status >= 200 && status < 300) accepted.push(received);
      return new Response(null, { status, headers });
    },
  });
  const sink: Sink = {
    url: `http://127.0.0.1:${server.port}/hook`,
    accepted,
    get requests() {
      return counts.requests;
    },
    get unsigned() {
      return counts.unsigned;
    },
    decide: () => 204,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return sink;
}

function isSigned(secret: string, body: Uint8Array, given: string | null): boolean {
  const expected = Buffer.from(`sha256=${createHmac("sha256", secret).update(body).digest("hex")}`);
  const actual = Buffer.from(given ?? "");
  return expected.length === actual.length && timingSafeEqual(expected, actual);
}
