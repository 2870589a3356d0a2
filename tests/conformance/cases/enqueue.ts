import type { ConformanceCase } from "../../support/conformance.ts";
import { rejects, same, that } from "../../support/conformance_assert.ts";
import { ACK, drain, ids, idsOf, job, put, settle, take } from "../../support/conformance_steps.ts";

/** Enqueuing: answers, copies of a request, dedupe, limits, and queues kept apart. */
export const enqueueCases: readonly ConformanceCase[] = [
  {
    name: "enqueue: one answer a job, in order",
    needs: [],
    async run({ queue }) {
      same(
        [...(await put(queue, "a", "b", "c"))],
        [
          { id: "a", duplicate: false },
          { id: "b", duplicate: false },
          { id: "c", duplicate: false },
        ],
        "the answers",
      );
      same([...(await put(queue))], [], "nothing to enqueue");
    },
  },
  {
    name: "enqueue: without dedupe two jobs of one id are two jobs",
    needs: [],
    async run({ queue }) {
      await put(queue, job("a", { body: "1" }), job("a", { body: "2" }));
      await put(queue, job("a", { body: "3" }));
      const deliveries = await drain(queue);
      same(
        deliveries.map((one) => one.body),
        ["1", "2", "3"],
        "the bodies",
      );
    },
  },
  {
    name: "enqueue: a request sent again adds nothing and answers as it did",
    needs: ["dedupe"],
    async run({ queue, other, fresh }) {
      const request = fresh("request");
      const jobs = [job("a"), job("b", { dedupe: true }), job("b", { dedupe: true })];
      const first = await queue.enqueue(request, jobs);
      same([...(await queue.enqueue(request, jobs))], [...first], "the second answer");
      same([...(await other.enqueue(request, jobs))], [...first], "the answer over another connection");
      same(ids(await drain(queue)), ["a", "b"], "the jobs");
      same([...(await queue.enqueue(request, jobs))], [...first], "the answer once they are finished");
      same(await take(queue), [], "a claim afterwards");
    },
  },
  {
    name: "enqueue: copies of a request sent at the same time add its jobs once",
    needs: ["dedupe"],
    async run({ queue, other, fresh }) {
      const request = fresh("request");
      const jobs = [job("a"), job("b")];
      const answers = await Promise.all(
        [queue, other, queue, other].map((connection) => connection.enqueue(request, jobs)),
      );
      for (const answer of answers) {
        same(
          answer.map((one) => one.duplicate),
          [false, false],
          "each answer",
        );
      }
      same(ids(await drain(queue)), ["a", "b"], "the jobs");
    },
  },
  {
    name: "enqueue: requests are told apart by their id alone",
    needs: ["dedupe"],
    async run({ queue, fresh }) {
      await queue.enqueue(fresh("request"), [job("a")]);
      await queue.enqueue(fresh("request"), [job("a")]);
      same(ids(await drain(queue)), ["a", "a"], "the jobs");
    },
  },
  {
    name: "dedupe: a second job of an id is kept out, even when the first is finished",
    needs: ["dedupe"],
    async run({ queue, other }) {
      const one = job("a", { dedupe: true });
      same((await put(queue, one))[0]?.duplicate, false, "the first");
      same((await put(other, one))[0]?.duplicate, true, "the second");
      const deliveries = await take(queue);
      same(ids(deliveries), ["a"], "the jobs");
      same((await put(queue, one))[0]?.duplicate, true, "the third, the first being held");
      await settle(queue, deliveries, ACK);
      same((await put(queue, one))[0]?.duplicate, true, "the fourth, the first being finished");
      same(await take(queue), [], "a claim afterwards");
    },
  },
  {
    name: "dedupe: within one request too, and only the copy is kept out",
    needs: ["dedupe"],
    async run({ queue }) {
      const answers = await put(
        queue,
        job("a", { dedupe: true }),
        job("b", { dedupe: true }),
        job("a", { dedupe: true }),
        job("c", { dedupe: true }),
      );
      same(
        answers.map((one) => one.duplicate),
        [false, false, true, false],
        "the answers",
      );
      same(ids(await drain(queue)), ["a", "b", "c"], "the jobs");
    },
  },
  {
    name: "dedupe: after its window an id may be used again",
    needs: ["dedupe"],
    async run({ open, shortMs, passShort }) {
      const { queue } = await open({ dedupeWindowMs: shortMs });
      const one = job("a", { dedupe: true });
      await put(queue, one);
      await passShort();
      same((await put(queue, one))[0]?.duplicate, false, "after the window");
      same(ids(await drain(queue)), ["a", "a"], "the jobs");
    },
  },
  {
    name: "dedupe: a copy does not lengthen the window",
    needs: ["dedupe"],
    async run({ open, shortMs, passMs }) {
      const { queue } = await open({ dedupeWindowMs: shortMs });
      const one = job("a", { dedupe: true });
      await put(queue, one);
      // Early in the window, so that a slow machine is not beyond it.
      await passMs(shortMs * 0.3);
      await put(queue, one);
      await passMs(shortMs * 0.95);
      same((await put(queue, one))[0]?.duplicate, false, "after the first one's window");
    },
  },
  {
    name: "enqueue: more than maxEnqueue jobs are refused, and none is taken in",
    needs: [],
    async run({ queue }) {
      const { maxEnqueue } = queue.limits;
      const jobs = idsOf("a", maxEnqueue + 1);
      await rejects(put(queue, ...jobs), "RangeError", ["maxEnqueue", String(maxEnqueue)], "maxEnqueue + 1");
      same(await take(queue), [], "a claim afterwards");
      const answers = await put(queue, ...jobs.slice(1));
      same(answers.length, maxEnqueue, "maxEnqueue jobs");
      const deliveries = await drain(queue);
      same(ids(deliveries), jobs.slice(1), "all of them came");
    },
  },
  {
    name: "enqueue: from several connections at once, each request's jobs stay together and in order",
    needs: ["atomic"],
    async run({ queue, other }) {
      await Promise.all(
        idsOf("r", 12).map((request, i) => put(i % 2 ? queue : other, ...idsOf(`${request}.`, 5))),
      );
      const came = ids(await drain(queue));
      same(came.length, 60, "how many came");
      for (let at = 0; at < came.length; at += 5) {
        const request = came[at]?.split(".")[0] as string;
        same(came.slice(at, at + 5), idsOf(`${request}.`, 5), "a request's jobs");
      }
    },
  },
  {
    name: "names: queues whose names look alike do not mix",
    needs: ["sizes", "peek", "dedupe"],
    async run({ open, fresh }) {
      const base = fresh("q");
      const names = [base, `${base}_b`, `${base}-b`, `${base}b`, base.toUpperCase(), `_${base}`];
      const queues = [];
      for (const name of names) queues.push((await open({ name })).queue);
      for (const queue of queues) {
        const [answer] = await put(queue, job("same-id", { body: queue.name, dedupe: true }));
        same(answer?.duplicate, false, `the id is free in ${queue.name}`);
      }
      for (const queue of queues) {
        const deliveries = await take(queue);
        same(
          deliveries.map((one) => one.body),
          [queue.name],
          `what ${queue.name} holds`,
        );
        await settle(queue, deliveries, { kind: "dead", error: queue.name });
      }
      for (const queue of queues) {
        const dead = await queue.peek!("dead", 10);
        same(
          dead.map((one) => one.error),
          [queue.name],
          `the dead letters of ${queue.name}`,
        );
      }
    },
  },
  {
    name: "names: a lease of one queue is unknown to another",
    needs: ["abandon"],
    async run({ open, fresh }) {
      const base = fresh("q");
      const one = (await open({ name: base })).queue;
      const two = (await open({ name: `${base}_2` })).queue;
      await put(one, "a");
      await put(two, "b");
      const deliveries = await take(one, 1, fresh("lease"));
      const id = deliveries[0]?.leaseId as string;
      same(await two.renew([id]), ["lost"], "its renewal there");
      same(await settle(two, deliveries, ACK), ["lost"], "its settling there");
      await two.abandon!([id]);
      same(await settle(one, deliveries, ACK), ["done"], "its settling here");
      same(ids(await take(two)), ["b"], "the other's jobs");
    },
  },
  {
    name: "names: a queue's name outside of the alphabet is refused",
    needs: [],
    async run({ broker }) {
      const settings = { leaseMs: 1000, requestTimeoutMs: 1000, dedupeWindowMs: 1000 };
      for (const name of ["", "a b", "a:b", "a{b}", "ä", "a/b", "a.b", "x".repeat(101)]) {
        let error: unknown;
        try {
          broker.queue(name, settings);
        } catch (caught) {
          error = caught;
        }
        that(error instanceof RangeError, `${JSON.stringify(name)} is refused with a RangeError`);
      }
    },
  },
];
