import { type ConformanceCase, LONG_MS } from "../../support/conformance.ts";
import { rejects, same } from "../../support/conformance_assert.ts";
import { ACK, DEAD, ids, job, put, RELEASE, settle, take } from "../../support/conformance_steps.ts";

const SETTINGS = { leaseMs: LONG_MS, requestTimeoutMs: 10_000, dedupeWindowMs: LONG_MS };

/** Opening, closing, and being told of new work. */
export const lifeCases: readonly ConformanceCase[] = [
  {
    name: "wake: an enqueue over another connection wakes the watcher",
    needs: ["wake"],
    async run({ queue, other, until }) {
      let wakes = 0;
      const watch = await queue.watch!(
        () => {
          wakes += 1;
        },
        () => {},
      );
      await put(other, "a");
      await until(() => wakes > 0, "the watcher was woken");
      same(ids(await take(queue)), ["a"], "the claim after it");
      // A delayed job too: whoever sleeps must learn when it is due.
      for (const connection of [other, queue]) {
        const before = wakes;
        await put(connection, job("later", { delayMs: connection === other ? 60_000 : 90_000 }));
        await until(() => wakes > before, "the watcher was woken for a delayed job");
      }
      await watch.close();
    },
  },
  {
    name: "wake: whatever makes work over the same connection wakes the watcher",
    needs: ["wake", "exchange", "abandon", "redrive", "pause"],
    async run({ queue, until }) {
      let wakes = 0;
      const watch = await queue.watch!(
        () => {
          wakes += 1;
        },
        () => {},
      );
      const wakesBy = async (what: string, step: () => Promise<unknown>) => {
        const before = wakes;
        await step();
        await until(() => wakes > before, `${what} woke the watcher`);
        return take(queue);
      };
      const enqueued = await wakesBy("an enqueue", () => put(queue, "a"));
      const released = await wakesBy("a release", () => settle(queue, enqueued, RELEASE));
      const exchanged = await wakesBy("an exchange", () =>
        queue.exchange!({
          settle: released.map((delivery) => ({ delivery, verdict: RELEASE })),
          renew: [],
        }),
      );
      const abandoned = await wakesBy("an abandon", () => queue.abandon!([exchanged[0]?.leaseId as string]));
      await settle(queue, abandoned, DEAD);
      const redriven = await wakesBy("a redrive", () => queue.redrive!({ limit: 1 }));
      await queue.pause!();
      await settle(queue, redriven, RELEASE);
      same(ids(await wakesBy("a resume", () => queue.resume!())), ["a"], "the claim after them all");
      await watch.close();
    },
  },
  {
    name: "wake: a release wakes the watcher",
    needs: ["wake"],
    async run({ queue, other, until }) {
      await put(queue, "a");
      const held = await take(other);
      let wakes = 0;
      const watch = await queue.watch!(
        () => {
          wakes += 1;
        },
        () => {},
      );
      await settle(other, held, RELEASE);
      await until(() => wakes > 0, "the watcher was woken");
      same(ids(await take(queue)), ["a"], "the claim after it");
      await watch.close();
    },
  },
  {
    name: "wake: a redrive wakes the watcher",
    needs: ["wake", "redrive"],
    async run({ queue, other, until }) {
      await put(queue, "a");
      await settle(other, await take(other), DEAD);
      let wakes = 0;
      const watch = await queue.watch!(
        () => {
          wakes += 1;
        },
        () => {},
      );
      await other.redrive!({ limit: 1 });
      await until(() => wakes > 0, "the watcher was woken");
      await watch.close();
    },
  },
  {
    name: "wake: a resume wakes the watcher",
    needs: ["wake", "pause"],
    async run({ queue, other, until }) {
      await put(queue, "a");
      await other.pause!();
      let wakes = 0;
      const watch = await queue.watch!(
        () => {
          wakes += 1;
        },
        () => {},
      );
      await other.resume!();
      await until(() => wakes > 0, "the watcher was woken");
      same(ids(await take(queue)), ["a"], "the claim after it");
      await watch.close();
    },
  },
  {
    name: "wake: every watcher is woken, a closed one is not",
    needs: ["wake"],
    async run({ queue, other, until }) {
      const wakes = [0, 0, 0];
      const watches = await Promise.all(
        [queue, other, queue].map((connection, i) =>
          connection.watch!(
            () => {
              wakes[i] = (wakes[i] ?? 0) + 1;
            },
            () => {},
          ),
        ),
      );
      await put(queue, "a");
      await until(() => wakes.every((count) => count > 0), "all three were woken");
      await watches[2]?.close();
      await watches[2]?.close();
      const [first = 0, second = 0, closed] = wakes;
      await take(queue);
      await put(other, "b");
      await until(() => (wakes[0] ?? 0) > first && (wakes[1] ?? 0) > second, "the two were woken again");
      same(wakes[2], closed, "the closed one was left alone");
      await watches[0]?.close();
      await watches[1]?.close();
    },
  },
  {
    name: "wake: closing the connection ends its watches quietly",
    needs: ["wake"],
    async run({ connect, open, fresh, until }) {
      const name = fresh("watched");
      const broker = connect();
      const watched = broker.queue(name, SETTINGS);
      await watched.open();
      const { queue } = await open({ name });
      let mine = 0;
      let ended = 0;
      let others = 0;
      await watched.watch!(
        () => {
          mine += 1;
        },
        () => {
          ended += 1;
        },
      );
      const watch = await queue.watch!(
        () => {
          others += 1;
        },
        () => {},
      );
      await broker.close();
      await put(queue, "a");
      await until(() => others > 0, "the other watcher was woken");
      same([mine, ended], [0, 0], "calls to the watcher of the closed connection");
      await watch.close();
    },
  },
  {
    name: "open: twice, and by several connections at once",
    needs: [],
    async run({ connect, fresh }) {
      const name = fresh("opened");
      const queues = [connect(), connect(), connect()].map((broker) => broker.queue(name, SETTINGS));
      await Promise.all([...queues, ...queues].map((queue) => queue.open()));
      await put(queues[0]!, "a");
      await queues[1]!.open();
      same(ids(await take(queues[2]!)), ["a"], "the claim");
    },
  },
  {
    name: "open: two handles of one connection are one queue",
    needs: [],
    async run({ broker, fresh }) {
      const name = fresh("handles");
      const one = broker.queue(name, SETTINGS);
      const two = broker.queue(name, SETTINGS);
      await one.open();
      await two.open();
      await put(one, "a");
      const held = await take(two);
      same(ids(held), ["a"], "the claim");
      same(await settle(one, held, ACK), ["done"], "the ack");
    },
  },
  {
    name: "close: twice, and what others hold and have stays",
    needs: [],
    async run({ connect, open, fresh }) {
      const name = fresh("closed");
      const broker = connect();
      const closing = broker.queue(name, SETTINGS);
      await closing.open();
      await put(closing, "a", "b");
      const { queue } = await open({ name });
      const held = await take(queue, 1);
      await broker.close();
      await broker.close();
      same(await settle(queue, held, ACK), ["done"], "the ack");
      same(ids(await take(queue)), ["b"], "the claim");
    },
  },
  {
    name: "close: leases are left to run out",
    needs: [],
    async run({ connect, open, fresh, shortMs, passShort }) {
      const name = fresh("closed");
      const broker = connect();
      const closing = broker.queue(name, { ...SETTINGS, leaseMs: shortMs });
      await closing.open();
      await put(closing, "a");
      await take(closing);
      await broker.close();
      const { queue } = await open({ name, leaseMs: shortMs });
      same(await take(queue), [], "a claim before");
      await passShort();
      const [delivery] = await take(queue);
      same([delivery?.id, delivery?.attempt, delivery?.suspect], ["a", 2, true], "the claim");
    },
  },
  {
    name: "close: leases are known to others still",
    needs: ["fenced"],
    async run({ connect, open, fresh }) {
      const name = fresh("closed");
      const broker = connect();
      const closing = broker.queue(name, SETTINGS);
      await closing.open();
      await put(closing, "a");
      const held = await take(closing);
      await broker.close();
      const { queue } = await open({ name });
      same(await queue.renew([held[0]?.leaseId as string]), ["held"], "the renewal");
      same(await settle(queue, held, ACK), ["done"], "the ack");
    },
  },
  {
    name: "close: a closed connection refuses every verb with a BrokerError",
    needs: [],
    async run({ connect, fresh }) {
      const broker = connect();
      const queue = broker.queue(fresh("closed"), SETTINGS);
      await queue.open();
      await put(queue, "a");
      const held = await take(queue);
      await broker.close();
      await rejects(put(queue, "b"), "BrokerError", ["closed"], "enqueue");
      await rejects(take(queue), "BrokerError", ["closed"], "claim");
      await rejects(settle(queue, held, ACK), "BrokerError", ["closed"], "settle");
      await rejects(queue.renew(["lease"]), "BrokerError", ["closed"], "renew");
    },
  },
];
