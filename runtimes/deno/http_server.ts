/**
 * Serving the HTTP app with Deno.
 *
 * @module
 */
import {
  type Address,
  cannotListen,
  type FetchHandler,
  type HttpServer,
  shownAddress,
} from "../cli/address.ts";

/**
 * Listens. Needs `--allow-net` for the address.
 *
 * With `"unstable": ["no-legacy-abort"]` in deno.json a request's signal tells that the caller hung up, as the drain route needs; without
 * it Deno also aborts it after each answer, which does no harm, and says so once on standard error.
 *
 * @throws {RangeError} when the address cannot be had.
 */
export function serveHttp(address: Address, fetch: FetchHandler): HttpServer {
  const cut = new AbortController();
  const inFlight = new InFlight();
  let stopping = false;
  let server: Deno.HttpServer<Deno.NetAddr>;
  try {
    server = Deno.serve(
      {
        hostname: address.host,
        port: address.port,
        signal: cut.signal,
        // Eddy says itself where it serves.
        onListen: () => {},
        // An error that reaches this point is none of the app's: its text stays in here.
        onError: () => new Response("Internal Server Error", { status: 500 }),
      },
      (request, info) => {
        if (stopping) return new Response("Stopping", { status: 503, headers: { connection: "close" } });
        inFlight.add(info.completed);
        return fetch(request);
      },
    );
  } catch (cause) {
    throw cannotListen(address, cause);
  }
  return {
    url: `http://${shownAddress(address.host, server.addr.port)}`,
    async stop(waitMs) {
      // Deno's own shutdown() cuts off bodies that are on their way in, and cannot be cut short itself once it waits.
      stopping = true;
      await inFlight.over(waitMs);
      cut.abort();
      await server.finished;
    },
  };
}

/** Requests whose answer has not gone out whole. */
class InFlight {
  #count = 0;
  #none: (() => void) | undefined;

  add(completed: Promise<void>): void {
    this.#count += 1;
    const done = () => {
      this.#count -= 1;
      if (this.#count === 0) this.#none?.();
    };
    completed.then(done, done);
  }

  /** Waits until there are none, but for `waitMs` at most. */
  async over(waitMs: number): Promise<void> {
    if (this.#count === 0) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      this.#none = resolve;
      timer = setTimeout(resolve, waitMs);
    });
    clearTimeout(timer);
  }
}
