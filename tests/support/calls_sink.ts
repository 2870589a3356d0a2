/**
 * A server that handlers call, and that tells the test of each call.
 *
 * @module
 */

/**
 * Starts one on a free port of the loopback. It answers every request with "ok".
 *
 * @param called is told each request's path, without its first slash, and its query.
 */
export function startCallsSink(called: (call: string) => void): Bun.Server<undefined> {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const { pathname, search } = new URL(request.url);
      called(pathname.slice(1) + search);
      return new Response("ok");
    },
  });
}
