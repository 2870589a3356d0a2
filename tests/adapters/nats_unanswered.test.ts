/** A pull that the server never answers: nats-server 2.9 forgets one that comes in the very moment in which its consumer was made. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import { bunPlatform } from "../../runtimes/bun/platform.ts";
import { ids, idsOf, put, take } from "../support/conformance_steps.ts";
import { type NatsServer, startNats } from "../support/nats_server.ts";

setDefaultTimeout(30_000);

const PULL = /PUB \$JS\.API\.CONSUMER\.MSG\.NEXT[^\r]*\r\n[^\r]*\r\n/;

let server: NatsServer;
beforeAll(async () => {
  server = await startNats();
});
afterAll(() => server.stop());

test("it is asked once more, long before the claim's own deadline", async () => {
  let swallowed = 0;
  let sent = 0;
  const broker = new NatsBroker({
    url: server.url,
    openWebSocket(url) {
      const socket = bunPlatform().openWebSocket(url);
      const send = socket.send.bind(socket);
      socket.send = (data) => {
        const text = Buffer.from(data as Uint8Array<ArrayBuffer>).toString("latin1");
        if (!PULL.test(text)) return send(data);
        if (swallowed > 0) sent += 1;
        // The first pull of all does not arrive.
        send(swallowed === 0 ? Buffer.from(text.replace(PULL, ""), "latin1") : data);
        swallowed += 1;
      };
      return socket;
    },
  });
  const queue = broker.queue("unanswered", {
    leaseMs: 60_000,
    requestTimeoutMs: 20_000,
    dedupeWindowMs: 60_000,
  });
  await queue.open();
  await put(queue, ...idsOf("a", 3));
  const started = performance.now();
  expect(ids(await take(queue))).toEqual(["a1", "a2", "a3"]);
  expect(performance.now() - started).toBeLessThan(15_000);
  expect([swallowed, sent]).toEqual([2, 1]);
  await broker.close();
});
