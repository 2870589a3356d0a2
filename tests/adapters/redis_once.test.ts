/** The client sends each request once, to the address it was given: whether to send it again is the loop's to say. */
import { expect, test } from "bun:test";
import { RedisBroker } from "../../adapters/redis/mod.ts";
import { subscribe } from "../../adapters/redis/watch.ts";
import { BrokerError } from "../../src/errors.ts";

const SETTINGS = { leaseMs: 1_000, requestTimeoutMs: 5_000, dedupeWindowMs: 1_000 };

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
    const queue = broker.queue("once", SETTINGS);
    await expect(queue.open()).rejects.toThrow(BrokerError);
    expect(requests).toBe(1);
    expect(broker.requests).toBe(1);
  } finally {
    server.stop(true);
  }
});

test("a redirect is refused, and nothing is sent where it leads", async () => {
  let strayed = 0;
  const elsewhere = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => {
      strayed += 1;
      return Response.json({ result: [] });
    },
  });
  let status = 0;
  const location = `http://127.0.0.1:${elsewhere.port}/hidden-place`;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response("moved", { status, headers: { location } }),
  });
  try {
    const url = `http://127.0.0.1:${server.port}`;
    const queue = new RedisBroker({ url, token: "any" }).queue("once", SETTINGS);
    const watching = {
      url,
      token: "any",
      channel: "wake",
      timeoutMs: 5_000,
      silenceMs: 5_000,
      onRequest: () => {},
      onWake: () => {},
      onEnd: () => {},
      ping: async () => {},
    };
    for (status of [301, 302, 303, 307, 308]) {
      for (const ask of [() => queue.open(), () => subscribe(watching)]) {
        const error: unknown = await ask().then(
          () => undefined,
          (caught: unknown) => caught,
        );
        expect(error).toBeInstanceOf(BrokerError);
        expect((error as BrokerError).message).toContain("redirects elsewhere");
        expect(Bun.inspect(error)).not.toContain("hidden-place");
      }
    }
    expect(strayed).toBe(0);
  } finally {
    await server.stop(true);
    await elsewhere.stop(true);
  }
});

test("an address goes by what it says, not by how it is written", async () => {
  const paths = new Set<string>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const { pathname, search } = new URL(request.url);
      paths.add(pathname + search);
      const open = [
        "ok",
        "generation",
        "evicted_keys:0",
        "maxmemory_policy:noeviction",
        "",
        "aof_enabled:1",
        "",
      ];
      return Response.json({ result: open });
    },
  });
  try {
    for (const [before, after] of [
      ["", ""],
      ["", "/"],
      ["", "//"],
      ["", "?"],
      ["", "/?"],
      ["", "#"],
      ["", " "],
      ["", "/ "],
      [" ", "\n"],
      ["@", ""],
    ] as const) {
      const url = `${before === "@" ? "" : before}http://${before.trim()}127.0.0.1:${server.port}${after}`;
      const queue = new RedisBroker({ url, token: "any" }).queue("once", SETTINGS);
      await queue.open();
      const watch = queue.watch?.(
        () => {},
        () => {},
      );
      await expect(watch).rejects.toThrow("has no subscriptions");
    }
    expect([...paths]).toEqual(["/", "/subscribe/eddy%3A%7Bonce%7D%3Awake"]);
  } finally {
    await server.stop(true);
  }
});
