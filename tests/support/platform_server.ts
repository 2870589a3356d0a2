/**
 * The server that the platform cases speak with.
 *
 * @module
 */

/** Starts it on a loopback port; see `PlatformUnderTest.origin` for what it answers. */
export function startPlatformServer(): { readonly origin: string; stop(): Promise<void> } {
  const server = Bun.serve<{ pairs: boolean; got: number }>({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request, self) {
      const { pathname } = new URL(request.url);
      if (pathname === "/socket" || pathname === "/pairs") {
        const upgraded = self.upgrade(request, { data: { pairs: pathname === "/pairs", got: 0 } });
        return upgraded ? undefined : new Response(null, { status: 426 });
      }
      if (pathname === "/silent") return await new Promise<Response>(() => {});
      if (pathname === "/sigterm" && request.method === "POST") {
        process.kill(Number(await request.text()), "SIGTERM");
        return new Response(null, { status: 204 });
      }
      if (pathname === "/echo") {
        const header = request.headers.get("x-eddy");
        return new Response(JSON.stringify({ method: request.method, header, body: await request.text() }), {
          headers: { "content-type": "application/json" },
        });
      }
      const status = /^\/status\/(\d{3})$/.exec(pathname)?.[1];
      return new Response("as asked", { status: Number(status ?? 404) });
    },
    websocket: {
      message(socket, message) {
        socket.data.got += 1;
        if (!socket.data.pairs || socket.data.got % 2 === 0) socket.send(message);
      },
    },
  });
  return { origin: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) };
}
