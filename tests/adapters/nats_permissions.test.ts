/** Users of a nats-server who may not do all that a worker needs: each permission that is missing is named, and nothing waits in vain or runs again for want of it. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import type { BrokerQueue } from "../../src/broker.ts";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import { ACK, job, put, settle, take } from "../support/conformance_steps.ts";
import { LONG } from "../support/nats_fixture.ts";
import { type NatsServer, startNats } from "../support/nats_server.ts";

setDefaultTimeout(30_000);

const FORBIDDEN = {
  acks: ["publish", "$JS.ACK.>"],
  pulls: ["publish", "$JS.API.CONSUMER.MSG.NEXT.>"],
  inboxes: ["subscribe", "_INBOX.>"],
  news: ["subscribe", "eddy.news.>"],
  removals: ["publish", "$JS.API.STREAM.MSG.DELETE.>"],
  makers: ["publish", "$JS.API.STREAM.CREATE.>"],
} as const;

let server: NatsServer;
beforeAll(async () => {
  const users = Object.entries(FORBIDDEN).map(
    ([user, [what, subject]]) =>
      `{ user: "${user}", password: "p", permissions: { ${what}: { deny: ["${subject}"] } } }`,
  );
  server = await startNats({
    config: `authorization { users: [ { user: "all", password: "p" }, ${users} ] }`,
  });
});
afterAll(() => server.stop());

async function withQueues(
  user: string,
  act: (queue: BrokerQueue, broker: NatsBroker) => Promise<void>,
): Promise<void> {
  const all = new NatsBroker({ url: server.url, user: "all", password: "p" });
  const broker = new NatsBroker({ url: server.url, user, password: "p" });
  try {
    const queue = all.queue(user, LONG);
    await queue.open();
    await put(queue, "a", "b");
    await act(broker.queue(user, LONG), broker);
  } finally {
    await broker.close();
    await all.close();
  }
}

/** A connection that is refused twice ends: what goes on over it must not see the library's own error. */
test("removals: no claim beside delayed jobs throws anything but the port's errors", async () => {
  await withQueues("removals", async (queue) => {
    await queue.open();
    await queue.enqueue("delayed", [job("c", { delayMs: 1 }), job("d", { delayMs: 1 })]);
    for (let claims = 0; claims < 4; claims++) {
      const error = await take(queue, 1).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      if (error !== undefined) expect(error).toBeInstanceOf(BrokerError);
    }
  });
});

async function refusal(verb: Promise<unknown>): Promise<string> {
  const error = await verb.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(BrokerRefusedError);
  return (error as Error).message;
}

test("acks: the settlement says so, and the claim after it: no job is run again and again", async () => {
  const words =
    "The server does not let this user publish $JS.ACK.EDDY_JOBS_acks.eddy_normal.>; give it that permission";
  await withQueues("acks", async (queue) => {
    await queue.open();
    expect(await refusal(settle(queue, await take(queue, 1), ACK))).toBe(words);
    expect(await refusal(take(queue, 1))).toBe(words);
  });
});

test("pulls: the claim says so, and does not take the queue for an empty one", async () => {
  await withQueues("pulls", async (queue) => {
    await queue.open();
    expect(await refusal(take(queue))).toContain(
      "publish $JS.API.CONSUMER.MSG.NEXT.EDDY_JOBS_pulls.eddy_normal;",
    );
  });
});

test("inboxes: opening says so, and nobody dials again and again", async () => {
  await withQueues("inboxes", async (queue, broker) => {
    const words = "The server does not let this user subscribe to _INBOX.>; give it that permission";
    expect(await refusal(queue.open())).toBe(words);
    expect(await refusal(queue.open())).toBe(words);
    expect(broker.requests).toBe(1);
  });
});

test("news of jobs: the claim says so", async () => {
  await withQueues("news", async (queue) => {
    await queue.open();
    expect(await refusal(take(queue))).toContain("subscribe to eddy.news.news.>;");
  });
});

test("makers: who may not make a queue is told that it is not there, and of what would let him", async () => {
  const broker = new NatsBroker({ url: server.url, user: "makers", password: "p" });
  try {
    const said = await refusal(broker.queue("absent", LONG).open());
    expect(said).toStartWith("Cannot open queue absent: it is not there, for the server has no stream EDDY_");
    expect(said).toContain("does not let this user publish $JS.API.STREAM.CREATE.EDDY_");
  } finally {
    await broker.close();
  }
});
