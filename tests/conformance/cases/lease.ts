import type { BrokerQueue, Delivery } from "../../../src/broker.ts";
import type { ConformanceCase } from "../../support/conformance.ts";
import { same, that } from "../../support/conformance_assert.ts";
import {
  ACK,
  claim,
  DEAD,
  drain,
  ids,
  idsOf,
  leaseId,
  put,
  RELEASE,
  RETRY,
  settle,
  take,
} from "../../support/conformance_steps.ts";

/** What a claim at `queue` took, and `abandoning` gives up, comes to `next` as if it had never been taken. */
async function givesBack(queue: BrokerQueue, abandoning: BrokerQueue, next: BrokerQueue): Promise<void> {
  await put(queue, "a", "b", "c");
  const id = leaseId();
  await claim(queue, 2, id);
  await abandoning.abandon!([id]);
  const deliveries = await take(next);
  same(ids(deliveries), ["a", "b", "c"], "the next claim");
  same(
    deliveries.map((one) => [one.attempt, one.suspect]),
    deliveries.map(() => [1, false]),
    "attempt and suspicion",
  );
}

/** Leases: renewing, running out, suspicion, and giving up by id. */
export const leaseCases: readonly ConformanceCase[] = [
  {
    name: "lease: a renewal gives the full time again, for every delivery under it",
    needs: [],
    async run({ open, shortMs, passMs }) {
      const { queue, other } = await open({ leaseMs: shortMs });
      await put(queue, ...idsOf("a", 8));
      const id = leaseId();
      const deliveries = await take(queue, 8, id);
      for (let i = 0; i < 3; i += 1) {
        await passMs(shortMs * 0.6);
        same(await queue.renew([id]), ["held"], "the renewal");
      }
      same(await take(other), [], "others get nothing");
      same(
        await settle(queue, deliveries, ACK),
        deliveries.map(() => "done"),
        "the settling",
      );
    },
  },
  {
    name: "lease: a claim sent again renews",
    needs: [],
    async run({ open, shortMs, passMs }) {
      const { queue, other } = await open({ leaseMs: shortMs });
      await put(queue, "a");
      const id = leaseId();
      await take(queue, 1, id);
      for (let i = 0; i < 2; i += 1) {
        await passMs(shortMs * 0.6);
        same(ids(await take(queue, 1, id)), ["a"], "the repeated claim");
      }
      same(await take(other), [], "others get nothing");
    },
  },
  {
    name: "lease: each renewal of a request has its own answer",
    needs: [],
    async run({ queue }) {
      await put(queue, "a", "b", "c");
      const [one, two, three] = [leaseId(), leaseId(), leaseId()];
      await take(queue, 1, one);
      const over = await take(queue, 1, two);
      await take(queue, 1, three);
      await settle(queue, over, ACK);
      same(
        [...(await queue.renew([three, two, leaseId(), one]))],
        ["held", "lost", "lost", "held"],
        "the answers",
      );
      same([...(await queue.renew([]))], [], "nothing to renew");
    },
  },
  {
    name: "lease: one that was lost cannot be renewed",
    needs: [],
    async run({ open, shortMs, passShort }) {
      const { queue, other } = await open({ leaseMs: shortMs });
      await put(queue, "a");
      const id = leaseId();
      await take(queue, 1, id);
      await passShort();
      const held = await take(other);
      same(await queue.renew([id]), ["lost"], "the renewal");
      same(await settle(other, held, ACK), ["done"], "the holder's ack");
    },
  },
  {
    name: "lease: past its deadline it can be renewed as long as nobody took its jobs back",
    needs: ["fenced"],
    async run({ open, shortMs, passShort }) {
      const { queue, other } = await open({ leaseMs: shortMs });
      await put(queue, "a");
      const id = leaseId();
      await take(queue, 1, id);
      await passShort();
      same(await queue.renew([id]), ["held"], "the late renewal");
      same(await take(other), [], "others get nothing");
    },
  },
  {
    name: "lease: jobs of one that ran out come back as suspects, their attempt charged",
    needs: [],
    async run({ open, shortMs, passShort }) {
      const { queue, other } = await open({ leaseMs: shortMs });
      await put(queue, "a", "b");
      await take(queue, 1);
      await passShort();
      const deliveries = await take(other);
      same(ids(deliveries), ["a", "b"], "the claim");
      same(
        deliveries.map((one) => [one.attempt, one.suspect]),
        [
          [2, true],
          [1, false],
        ],
        "attempt and suspicion",
      );
    },
  },
  {
    name: "lease: suspects come before new jobs, in the order they had",
    needs: [],
    async run({ open, shortMs, passShort }) {
      const { queue, other } = await open({ leaseMs: shortMs });
      await put(queue, "a", "b", "c", "d");
      await take(queue, 3);
      await put(queue, "e");
      await passShort();
      same(ids(await take(other)), ["a", "b", "c", "d", "e"], "the claim");
    },
  },
  {
    name: "lease: the end of one does not touch another",
    needs: [],
    async run({ open, shortMs, passMs }) {
      const { queue, other } = await open({ leaseMs: shortMs });
      await put(queue, "a", "b");
      const kept = leaseId();
      await take(queue, 1);
      const deliveries = await take(queue, 1, kept);
      await passMs(shortMs * 0.6);
      await queue.renew([kept]);
      await passMs(shortMs * 0.6);
      same(ids(await take(other)), ["a"], "only the first lease ran out");
      same(await settle(queue, deliveries, ACK), ["done"], "the renewed one is held");
    },
  },
  {
    name: "lease: suspicion is kept by a release and cleared by a retry",
    needs: [],
    async run({ open, shortMs, passShort }) {
      const { queue } = await open({ leaseMs: shortMs });
      await put(queue, "a");
      await take(queue);
      await passShort();
      const first = await take(queue);
      same([first[0]?.suspect, first[0]?.attempt], [true, 2], "after it ran out");
      await settle(queue, first, RELEASE);
      const second = await take(queue);
      same([second[0]?.suspect, second[0]?.attempt], [true, 2], "after a release");
      await settle(queue, second, RETRY);
      const third = await take(queue);
      same([third[0]?.suspect, third[0]?.attempt], [false, 3], "after a retry");
    },
  },
  {
    name: "lease: released suspects stay before new jobs",
    needs: [],
    async run({ open, shortMs, passShort }) {
      const { queue } = await open({ leaseMs: shortMs });
      await put(queue, "a", "b", "c");
      await take(queue, 2);
      await passShort();
      await settle(queue, await take(queue, 2), RELEASE);
      same(ids(await take(queue)), ["a", "b", "c"], "the claim");
    },
  },
  {
    name: "lease: a job that runs out again and again is charged each time",
    needs: [],
    async run({ open, shortMs, passShort }) {
      const { queue } = await open({ leaseMs: shortMs });
      await put(queue, "a");
      for (const attempt of [1, 2, 3]) {
        const [delivery] = await take(queue);
        same([delivery?.attempt, delivery?.suspect], [attempt, attempt > 1], "attempt and suspicion");
        await passShort();
      }
    },
  },
  {
    name: "lease: many that ran out together all come back",
    needs: [],
    async run({ open, shortMs, passShort }) {
      const { queue, other } = await open({ leaseMs: shortMs });
      const wanted = idsOf("a", 60);
      await put(queue, ...wanted);
      for (let i = 0; i < 20; i += 1) await take(queue, 3);
      await passShort();
      const deliveries = await drain(other);
      same(ids(deliveries), wanted, "the claims");
      that(
        deliveries.every((one) => one.suspect && one.attempt === 2),
        "all are suspects and charged",
      );
    },
  },
  {
    name: "abandon: gives back what a lost reply carried, in order, no attempt charged",
    needs: ["abandon"],
    run: ({ queue, other }) => givesBack(queue, queue, other),
  },
  {
    name: "abandon: by another connection, gives back what the first one holds",
    needs: ["abandon", "fenced"],
    run: ({ queue, other }) => givesBack(queue, other, queue),
  },
  {
    name: "abandon: ends the lease, so a late copy of the claim takes nothing",
    needs: ["abandon"],
    async run({ queue, other }) {
      await put(queue, "a");
      const id = leaseId();
      await claim(queue, 2, id);
      await queue.abandon!([id]);
      same(await take(queue, 2, id), [], "the late copy");
      same(await queue.renew([id]), ["lost"], "a renewal");
      same(ids(await take(other)), ["a"], "a new claim");
    },
  },
  {
    name: "abandon: before the claim itself arrives, that claim takes nothing",
    needs: ["abandon"],
    async run({ queue }) {
      await put(queue, "a");
      const id = leaseId();
      await queue.abandon!([id]);
      same(await take(queue, 2, id), [], "the claim that came late");
      same(ids(await take(queue)), ["a"], "a new claim");
    },
  },
  {
    name: "abandon: by another connection before the claim arrives, that claim takes nothing",
    needs: ["abandon", "fenced"],
    async run({ queue, other }) {
      await put(queue, "a");
      const id = leaseId();
      await other.abandon!([id]);
      same(await take(queue, 2, id), [], "the claim that came late");
      same(ids(await take(queue)), ["a"], "a new claim");
    },
  },
  {
    name: "abandon: verdicts under it are lost, those given before stay done",
    needs: ["abandon"],
    async run({ queue }) {
      await put(queue, "a", "b");
      const deliveries = await take(queue);
      await settle(queue, deliveries.slice(0, 1), ACK);
      await queue.abandon!([deliveries[0]?.leaseId as string]);
      same(await settle(queue, deliveries, DEAD), ["done", "lost"], "the results");
      same(ids(await drain(queue)), ["b"], "what is left");
    },
  },
  {
    name: "abandon: twice, several, and unknown ones",
    needs: ["abandon"],
    async run({ queue }) {
      await put(queue, "a", "b", "c");
      const [one, two] = [leaseId(), leaseId()];
      await take(queue, 1, one);
      const kept = await take(queue, 1);
      await take(queue, 1, two);
      await queue.abandon!([two, leaseId(), one]);
      await queue.abandon!([one, two]);
      await queue.abandon!([]);
      same(ids(await take(queue)), ["a", "c"], "what came back");
      same(await settle(queue, kept as Delivery[], ACK), ["done"], "the lease between them");
    },
  },
];
