/** The client sends each request once: whether to send it again is the loop's to say. */
import { expect, test } from "bun:test";
import { RedisBroker } from "../../adapters/redis/mod.ts";
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
