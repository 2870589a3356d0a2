/** The pure parts of the NATS adapter. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ReadyJobs } from "../../adapters/memory/levels.ts";
import { parseAckSubject } from "../../adapters/nats/ack_subject.ts";
import { Address } from "../../adapters/nats/address.ts";
import { ServerClock } from "../../adapters/nats/clock.ts";
import { holdAll } from "../../adapters/nats/deliveries.ts";
import { EncodedHeaders, errorHeader, H, ownHeaders, readEnvelope } from "../../adapters/nats/envelope.ts";
import { Fairness, type PerLevel } from "../../adapters/nats/fairness.ts";
import { Incoming } from "../../adapters/nats/incoming.ts";
import { Lane } from "../../adapters/nats/lane.ts";
import { LaterIndex } from "../../adapters/nats/later.ts";
import { type Held, Lease, Leases } from "../../adapters/nats/leases.ts";
import { laterTail, namesOf, parseLater } from "../../adapters/nats/names.ts";
import { countedHandOuts, type Raw } from "../../adapters/nats/raw.ts";
import { MAX_ERROR_LENGTH } from "../../src/broker.ts";

const text = (list: Parameters<typeof ownHeaders>[0]) =>
  new TextDecoder().decode(new EncodedHeaders(ownHeaders(list)).encode());

describe("headers", () => {
  const name = fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,20}$/);
  const value = fc.stringMatching(/^[\t\x20-\x7e]{0,40}$/);

  test("of a job come back as they were, whatever they are", () => {
    fc.assert(
      fc.property(fc.dictionary(name, value), (headers) => {
        expect({ ...readEnvelope(text(headers)).headers }).toEqual({ ...headers });
      }),
    );
  });

  test("of ours are told apart from a job's of nearly the same name", () => {
    const headers = { "eddy-id": "mine", "nats-msg-id": "too", constructor: "c" };
    const envelope = readEnvelope(text(headers));
    expect({ ...envelope.headers }).toEqual(headers);
    expect(envelope.id).toBeUndefined();
  });

  test("of the server's own do not become a job's, whatever a message says: they would be obeyed when it is moved", () => {
    const exact = {
      "nats-rollup": "all",
      "Nats-Rollup": "all",
      "a\r\nNats-Rollup": "all",
      b: "x\ny",
      c: " kept ",
    };
    const envelope = readEnvelope(`NATS/1.0\r\nEddy-Headers: ${JSON.stringify(exact)}\r\n\r\n`);
    expect({ ...envelope.headers }).toEqual({ "nats-rollup": "all", c: " kept " });
  });

  test("an error comes back as it was, cut, on one line of ASCII", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), (error) => {
        const header = errorHeader(error);
        expect(header).toMatch(/^[\x20-\x7e]*$/);
        const encoded = new TextDecoder().decode(new EncodedHeaders([[H.error, header]]).encode());
        expect(readEnvelope(encoded).error).toBe(error.toWellFormed());
      }),
    );
    expect(JSON.parse(errorHeader("x".repeat(5000)))).toHaveLength(MAX_ERROR_LENGTH);
  });

  test("that are no headers of ours, or broken, harm nothing", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), (rubbish) => {
        readEnvelope(rubbish);
        readEnvelope(`NATS/1.0\r\n${rubbish}\r\n\r\n`);
      }),
    );
    const broken = `NATS/1.0\r\nEddy-Attempts: -1\r\nEddy-Headers: {"a\r\nEddy-Error: [1]\r\nEddy-Id: a b\r\nNats-Msg-Id: id:ok\r\n\r\n`;
    expect(readEnvelope(broken)).toMatchObject({
      id: "ok",
      attemptsBefore: 0,
      error: undefined,
      headers: {},
    });
  });
});

describe("the reply subject", () => {
  test("of the older and the newer form", () => {
    for (const reply of [
      "$JS.ACK.S.c.3.17.21.1796006971833221849.4",
      "$JS.ACK._.hash.S.c.3.17.21.1796006971833221849.4",
      "$JS.ACK.domain.hash.S.c.3.17.21.1796006971833221849.4.token",
    ]) {
      const info = parseAckSubject(Address.of(reply));
      expect(info).toMatchObject({ delivered: 3, streamSequence: 17 });
      expect(info?.stream).toBe("S");
      expect(info?.storedNs).toBe("1796006971833221849");
      expect(info?.storedMs).toBe(1_796_006_971_833);
    }
    expect(parseAckSubject(Address.of("$JS.ACK.S.c.3.17.21.96006971833221849.4"))?.storedNs).toBe(
      "0096006971833221849",
    );
  });

  test("anything else is none", () => {
    for (const reply of ["", "_INBOX.x", "$JS.ACK.S", "$JS.ACK.S.c.0.1.1.1.0", "$JS.ACK.S.c.x.1.1.1.0"]) {
      expect(parseAckSubject(Address.of(reply))).toBeUndefined();
    }
  });
});

describe("names", () => {
  test("of queues that look alike never meet", () => {
    const queues = ["q", "q_q", "DEAD_q", "JOBS_q", "q-b", "Q"];
    const all = queues.flatMap((queue) => {
      const names = namesOf("EDDY", queue);
      return [names.jobs, names.dead, names.exhausted];
    });
    expect(new Set(all).size).toBe(all.length);
  });

  test("a delayed job's subject holds when it is due and its level", () => {
    for (const level of [0, 1, 2] as const) {
      const subject = `eddy.jobs.q${laterTail(1_796_006_971_833, level, "a1")}`;
      expect(parseLater(subject)).toEqual({ dueAt: 1_796_006_971_833, level });
    }
    for (const other of ["eddy.jobs.q", "eddy.jobs.q.high", "eddy.jobs.q.later.x.high.a"]) {
      expect(parseLater(other)).toBeUndefined();
    }
  });
});

test("what is due comes earliest first, each once", () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 50 })), fc.nat({ max: 50 }), (times, at) => {
      const index = new LaterIndex();
      const base = 1_796_006_971_000;
      times.forEach((time, i) => {
        index.add(`q${laterTail(base + time, 1, `u${i}`)}`);
      });
      const taken: number[] = [];
      for (;;) {
        const due = index.due(base + at, 3);
        if (due.length === 0) break;
        for (const subject of due) {
          taken.push((parseLater(subject)?.dueAt ?? 0) - base);
          index.remove(subject);
        }
      }
      expect(taken).toEqual(times.filter((time) => time <= at).sort((a, b) => a - b));
      expect(index.size).toBe(times.length - taken.length);
      const later = times.filter((time) => time > at);
      expect(index.nextDueAt).toBe(later.length === 0 ? Number.POSITIVE_INFINITY : base + Math.min(...later));
    }),
  );
});

test("the server's clock is never thought later than it is where that makes a job early, nor earlier where that makes it late", () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 1e6, noNaN: true }),
      fc.double({ min: 0, max: 500, noNaN: true }),
      fc.double({ min: 0, max: 500, noNaN: true }),
      fc.integer({ min: -1e9, max: 1e12 }),
      fc.nat({ max: 60_000 }),
      (sentAt, there, back, difference, later) => {
        const clock = new ServerClock();
        const stored = sentAt + there;
        clock.read(sentAt, stored + back, Math.floor(stored + difference));
        const now = stored + back + later;
        expect(clock.earliest(now)).toBeLessThanOrEqual(now + difference);
        expect(clock.latest(now)).toBeGreaterThanOrEqual(now + difference);
        expect(clock.latest(now) - clock.earliest(now)).toBeLessThanOrEqual(there + back + 4);
      },
    ),
  );
});

test("levels that have enough share claims of any size as the memory broker shares them", () => {
  fc.assert(
    fc.property(
      fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 }),
      (has, claims) => {
        const fairness = new Fairness();
        const model = new ReadyJobs<{ level: 0 | 1 | 2; position: number }>();
        for (const level of [0, 1, 2] as const) {
          for (let n = 0; has[level] && n < 800; n++) model.append({ level, position: n });
        }
        for (const max of claims) {
          const expected: PerLevel<number> = [0, 0, 0];
          for (const job of model.take(max)) expected[job.level] += 1;
          const quota = fairness.allot(max, has);
          expect(quota).toEqual(expected);
          fairness.gave(quota, has);
        }
      },
    ),
  );
});

test("a level that runs dry leaves its share to the others, and nobody starves", () => {
  const stock = fc.tuple(fc.nat({ max: 60 }), fc.nat({ max: 60 }), fc.nat({ max: 60 }));
  fc.assert(
    fc.property(stock, fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 20 }), (added, claims) => {
      const fairness = new Fairness();
      const there: PerLevel<number> = [...added];
      let given = 0;
      let low = 0;
      for (const max of claims) {
        const before = there[0] + there[1] + there[2];
        const short: PerLevel<boolean> = [false, false, false];
        const gave: PerLevel<number> = [0, 0, 0];
        // As a claim does it: it learns only by asking that a level is dry.
        const has = () => there.map((_, level) => added[level] !== 0 && !short[level]) as PerLevel<boolean>;
        let left = max;
        for (let quota = fairness.allot(left, has()); left > 0; quota = fairness.allot(left, has())) {
          if (quota[0] + quota[1] + quota[2] === 0) break;
          for (const level of [0, 1, 2] as const) {
            const got = Math.min(quota[level], there[level]);
            there[level] -= got;
            gave[level] += got;
            left -= got;
            if (got < quota[level]) short[level] = true;
          }
        }
        fairness.gave(gave, has());
        expect(max - left).toBe(Math.min(max, before));
        given += max - left;
        low += gave[2];
        // Passed over by eight at most, where normal's turn came first.
        if (there[2] > 0) expect(low).toBeGreaterThanOrEqual(Math.floor(given / 9));
      }
    }),
  );
});

test("of a message's hand-outs count the last, and as many before as whole leases fit into its age", () => {
  const counted = (delivered: number, ageMs: number) => countedHandOuts(delivered, ageMs, 100);
  expect([counted(1, 0), counted(1, 1_000), counted(3, 99), counted(3, -5)]).toEqual([1, 1, 1, 1]);
  expect([counted(2, 100), counted(3, 199), counted(3, 200), counted(3, 5_000)]).toEqual([2, 2, 3, 3]);
});

describe("messages put under a lease", () => {
  const lane = () => new Lane(1, "main", "EDDY_JOBS_q", "eddy_normal", "eddy.jobs.q");
  const nothing = {
    end: 2,
    take: undefined,
    subjectAt: 0,
    subjectTo: 0,
    replyAt: 0,
    replyTo: 0,
    headersAt: 0,
    bodyAt: 0,
  };
  const incoming = new Incoming(new Uint8Array(2), nothing);
  const raw = (of: Lane, sequence: number, more = ""): Raw => {
    const reply = Address.of(
      `$JS.ACK.EDDY_JOBS_q.eddy_normal.1.${sequence}.${sequence}.1700000000000000000.0${more}`,
    );
    const info = parseAckSubject(reply);
    if (info === undefined) throw new Error("no reply subject");
    return {
      lane: of,
      reply,
      info,
      envelope: readEnvelope(""),
      incoming,
      body: "",
      sentAt: 0,
      handOuts: 1,
    };
  };
  const held = (lease: Lease) =>
    lease.openSlots().map(({ message, reply }) => [message.info.streamSequence, reply.text]);

  test("one that the server hands out again while we have it is not taken twice: its acks go where the last hand-out says", () => {
    const leases = new Leases();
    const main = lane();
    const first = new Lease("first", 1_000);
    holdAll([raw(main, 1), raw(main, 2)], first, leases, 0);
    leases.add(first, 0);
    const second = new Lease("second", 1_000);
    const again = raw(main, 2, "0");
    holdAll([again, raw(main, 3)], second, leases, 10);
    expect(held(second)).toEqual([[3, raw(main, 3).reply.text]]);
    expect(held(first)[1]).toEqual([2, again.reply.text]);
    expect([leases.held(main, 2)?.lease.id, leases.held(lane(), 2)]).toEqual(["first", undefined]);
  });

  test("one whose verdict took effect, or whose lease is over, is taken again", () => {
    const leases = new Leases();
    const main = lane();
    const first = new Lease("first", 1_000);
    holdAll([raw(main, 1), raw(main, 2), raw(main, 3)], first, leases, 0);
    leases.add(first, 0);
    leases.settled(first.slots[0] as Held, 5);
    const second = new Lease("second", 3_000);
    holdAll([raw(main, 1)], second, leases, 10);
    leases.add(second, 10);
    expect(held(second).map(([sequence]) => sequence)).toEqual([1]);
    const third = new Lease("third", 3_000);
    holdAll([raw(main, 1), raw(main, 3)], third, leases, 1_000);
    expect(held(third).map(([sequence]) => sequence)).toEqual([3]);
    expect(leases.find({ leaseId: "first", token: "1" }, 1_000)).toBe("lost");
    expect(leases.find({ leaseId: "first", token: "0" }, 1_000)).toBe("done");
  });
});
