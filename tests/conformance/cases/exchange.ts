import type { Delivery, ExchangeRequest } from "../../../src/broker.ts";
import type { ConformanceCase } from "../../support/conformance.ts";
import { same, that } from "../../support/conformance_assert.ts";
import { ACK, ids, leaseId, put, RELEASE, RETRY, settle, take } from "../../support/conformance_steps.ts";

function empty(): ExchangeRequest {
  return { settle: [], renew: [] };
}

/** Exchange: settle, renew and claim in one round trip, each part with its own results. */
export const exchangeCases: readonly ConformanceCase[] = [
  {
    name: "exchange: all parts at once",
    needs: ["exchange", "memo"],
    async run({ queue }) {
      await put(queue, "a", "b", "c", "d");
      const [a, b] = (await take(queue, 2)) as [Delivery, Delivery];
      const [c] = (await take(queue, 1)) as [Delivery];
      const next = leaseId();
      const reply = await queue.exchange!({
        settle: [
          { delivery: a, verdict: ACK },
          { delivery: b, verdict: RETRY },
        ],
        renew: [c.leaseId, leaseId()],
        claim: { leaseId: next, max: 4, waitMs: 0, recall: true },
        remember: "memo",
      });
      same([...reply.settled], ["done", "done"], "settled");
      same([...reply.renewed], ["held", "lost"], "renewed");
      const claimed = reply.claimed;
      that(claimed !== undefined, "claimed is there");
      same(ids(claimed.deliveries), ["d", "b"], "claimed");
      same(
        claimed.deliveries.map((one) => [one.leaseId, one.attempt]),
        [
          [next, 1],
          [next, 2],
        ],
        "their lease and attempts",
      );
    },
  },
  {
    name: "exchange: settling comes before claiming",
    needs: ["exchange"],
    async run({ queue }) {
      await put(queue, "a");
      const deliveries = await take(queue);
      const reply = await queue.exchange!({
        settle: deliveries.map((delivery) => ({ delivery, verdict: RELEASE })),
        renew: [],
        claim: { leaseId: leaseId(), max: 4, waitMs: 0 },
      });
      same(ids(reply.claimed?.deliveries ?? []), ["a"], "the released job is claimed at once");
      same(await settle(queue, reply.claimed?.deliveries ?? [], ACK), ["done"], "its ack");
    },
  },
  {
    name: "exchange: sent twice it counts once",
    needs: ["exchange"],
    async run({ queue, other }) {
      await put(queue, "a", "b", "c", "d", "e");
      const [a, b, c] = (await take(queue, 3)) as [Delivery, Delivery, Delivery];
      const request: ExchangeRequest = {
        settle: [
          { delivery: a, verdict: ACK },
          { delivery: b, verdict: RETRY },
          { delivery: c, verdict: RELEASE },
        ],
        renew: [],
        claim: { leaseId: leaseId(), max: 2, waitMs: 0 },
      };
      const first = await queue.exchange!(request);
      const second = await other.exchange!(request);
      same([...second.settled], ["done", "done", "done"], "settled");
      same(second.claimed?.deliveries, first.claimed?.deliveries, "claimed");
      same(ids(first.claimed?.deliveries ?? []), ["c", "d"], "what was claimed");
      same(ids(await take(queue)), ["e", "b"], "what is left");
    },
  },
  {
    name: "exchange: a lost settlement hinders neither the others nor the claim",
    needs: ["exchange"],
    async run({ open, shortMs, passShort }) {
      const { queue, other } = await open({ leaseMs: shortMs });
      await put(queue, "a");
      const lost = await take(queue);
      await passShort();
      const taken = await take(other);
      same(ids(taken), ["a"], "the other's claim");
      await put(queue, "b", "c");
      const [b] = (await take(queue, 1)) as [Delivery];
      const reply = await queue.exchange!({
        settle: [
          { delivery: lost[0] as Delivery, verdict: ACK },
          { delivery: b, verdict: ACK },
        ],
        renew: [lost[0]?.leaseId as string],
        claim: { leaseId: leaseId(), max: 4, waitMs: 0 },
      });
      same([...reply.settled], ["lost", "done"], "settled");
      same([...reply.renewed], ["lost"], "renewed");
      same(ids(reply.claimed?.deliveries ?? []), ["c"], "claimed");
    },
  },
  {
    name: "exchange: each part alone, and none",
    needs: ["exchange"],
    async run({ queue }) {
      const nothing = await queue.exchange!(empty());
      same([[...nothing.settled], [...nothing.renewed]], [[], []], "nothing");
      same(nothing.claimed, undefined, "no claim was asked for");
      await put(queue, "a");
      const claimed = await queue.exchange!({
        ...empty(),
        claim: { leaseId: leaseId(), max: 1, waitMs: 0 },
      });
      const deliveries = claimed.claimed?.deliveries ?? [];
      same(ids(deliveries), ["a"], "a claim alone");
      const renewed = await queue.exchange!({ ...empty(), renew: [deliveries[0]?.leaseId as string] });
      same([...renewed.renewed], ["held"], "a renewal alone");
      const settled = await queue.exchange!({
        ...empty(),
        settle: [{ delivery: deliveries[0] as Delivery, verdict: ACK }],
      });
      same([...settled.settled], ["done"], "a settling alone");
    },
  },
  {
    name: "exchange: a whole queue through exchanges alone",
    needs: ["exchange"],
    async run({ queue }) {
      const wanted = Array.from({ length: 100 }, (_, i) => `a${i}`);
      await put(queue, ...wanted);
      const came: string[] = [];
      let held: readonly Delivery[] = [];
      do {
        const reply = await queue.exchange!({
          settle: held.map((delivery) => ({ delivery, verdict: ACK })),
          renew: [],
          claim: { leaseId: leaseId(), max: 16, waitMs: 0 },
        });
        that(
          reply.settled.every((result) => result === "done"),
          "each batch is settled by the next exchange",
        );
        held = reply.claimed?.deliveries ?? [];
        came.push(...ids(held));
      } while (held.length > 0);
      same(came, wanted, "what came");
    },
  },
];
