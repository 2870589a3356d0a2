/**
 * A server that lets its callers wait until the test answers them.
 *
 * @module
 */

export interface HoldingServer extends AsyncDisposable {
  readonly url: string;
  /** The paths asked for so far, in order. */
  readonly asked: readonly string[];
  /** Resolves when so many requests have come. */
  came(count: number): Promise<void>;
  /** Answers those who wait, and everybody from now on. */
  answer(status?: number): void;
}

export function holdingServer(): HoldingServer {
  const asked: string[] = [];
  let news = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<number>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      asked.push(new URL(request.url).pathname.slice(1));
      news.resolve();
      news = Promise.withResolvers<void>();
      return new Response(null, { status: await gate.promise });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    asked,
    async came(count) {
      while (asked.length < count) await news.promise;
    },
    answer: (status = 204) => gate.resolve(status),
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}
