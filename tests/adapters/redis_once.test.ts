/** The client sends each request once: whether to send it again is the loop's to say. */
import { expect, test } from "bun:test";
import { RedisBroker } from "../../adapters/redis/mod.ts";
import { subscribe } from "../../adapters/redis/watch.ts";
import { BrokerError } from "../../src/errors.ts";

test("a connection that breaks off is not tried again by the client itself", async () => {
  let requests = 0;
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      // The request arrived, and may have had its effect; its answer never comes.
      data: (socket) => {
        requests += 1;
        socket.end();
      },
    },
  });
  try {
    const broker = new RedisBroker({ url: `http://127.0.0.1:${server.port}`, token: "any" });
    const queue = broker.queue("once", { leaseMs: 1_000, requestTimeoutMs: 5_000, dedupeWindowMs: 1_000 });
    await expect(queue.open()).rejects.toThrow(BrokerError);
    expect(requests).toBe(1);
    expect(broker.requests).toBe(1);
  } finally {
    server.stop(true);
  }
});

test("a redirect is refused with a sentence, and nothing is sent where it leads", async () => {
  let strayed = 0;
  const elsewhere = Bun.serve({
    port: 0,
    fetch: () => {
      strayed += 1;
      return Response.json({ result: "PONG" });
    },
  });
  let status = 307;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () =>
      new Response(null, {
        status,
        headers: { location: `http://localhost:${elsewhere.port}/secret-place` },
      }),
  });
  try {
    const url = `http://127.0.0.1:${server.port}`;
    const broker = new RedisBroker({ url, token: "any" });
    const settings = { leaseMs: 1_000, requestTimeoutMs: 5_000, dedupeWindowMs: 1_000 };
    for (status of [301, 302, 303, 307, 308]) {
      const error = await broker
        .queue("once", settings)
        .open()
        .then(
          () => undefined,
          (caught: unknown) => caught,
        );
      expect(error).toBeInstanceOf(BrokerError);
      expect((error as Error).message).toContain("redirects elsewhere");
      expect((error as Error).message).not.toContain("secret-place");
    }
    const watch = subscribe({
      url,
      token: "any",
      channel: "c",
      timeoutMs: 5_000,
      silenceMs: 5_000,
      onRequest: () => {},
      onWake: () => {},
      onEnd: () => {},
      ping: async () => {},
    });
    await expect(watch).rejects.toThrow("redirects elsewhere");
    expect(strayed).toBe(0);
  } finally {
    await server.stop(true);
    await elsewhere.stop(true);
  }
});
