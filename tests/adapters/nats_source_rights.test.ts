/** The permissions that the README lists for a queue with a source, besides the queue's own: with them it is worked, and without any one of them something does not happen. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import type { BrokerQueue, Delivery } from "../../src/broker.ts";
import { BrokerRefusedError } from "../../src/errors.ts";
import { ACK, DEAD, job, leaseId, put, RELEASE, RETRY, settle, take } from "../support/conformance_steps.ts";
import { LONG } from "../support/nats_fixture.ts";
import { BLOCKS, type Entry, entriesOf, granted, tellsOf } from "../support/nats_rights.ts";
import { type NatsServer, startNats } from "../support/nats_server.ts";
import { Operator } from "../support/nats_tap.ts";

setDefaultTimeout(30_000);

/** The parts of the queue's own list that a worker needs. */
const OWN = entriesOf((BLOCKS[0] ?? "").replaceAll("emails", "orders")).filter(({ part }) => part <= 1);
const ENTRIES = entriesOf(BLOCKS[1] ?? "");
/** Without it nothing is refused: what ran out becomes a dead letter, and stays in the source's stream as well. */
const SILENT = "$JS.API.STREAM.MSG.DELETE.ORDERS";

/** For one message, answered in any case. */
const PULL = JSON.stringify({ batch: 1, expires: 50e6 });

class StaysThere extends Error {}

interface Role {
  readonly parts: readonly number[];
  readonly maxDeliver: number;
  readonly life: (queue: BrokerQueue, stream: string) => Promise<void>;
}

const ROLES: Readonly<Record<string, Role>> = {
  works: { parts: [0], maxDeliver: -1, life: work },
  looks: {
    parts: [0, 1],
    maxDeliver: -1,
    async life(queue, stream) {
      await work(queue, stream);
      await publish(stream, "seen");
      expect((await queue.peek?.("ready", 10))?.map(({ body }) => body)).toEqual(["seen"]);
    },
  },
  ends: {
    parts: [0, 1, 2],
    maxDeliver: 2,
    async life(queue, stream) {
      await work(queue, stream);
      await publish(stream, "ran-out");
      await useUp(stream, queue.name);
      expect(await take(queue)).toEqual([]);
      expect(await messages(`EDDY_DEAD_${queue.name}`)).toBe(2);
      expect(await messages(`EDDY_EXHAUSTED_${queue.name}`)).toBe(0);
      if ((await messages(stream)) > 0) throw new StaysThere();
    },
  },
};

/** Works on jobs of the source and of the queue's own, to each of their ends. */
async function work(queue: BrokerQueue, stream: string): Promise<void> {
  await queue.open();
  await put(queue, job("own"), job("high", { priority: "high" }));
  const bodies = ["acked", "retried", "released", "dead"];
  for (const body of bodies) await publish(stream, body);
  const jobs = new Map<string, Delivery>();
  while (jobs.size < 6) for (const one of await next(queue)) jobs.set(String(one.body), one);
  const of = (body: string) => [jobs.get(body) as Delivery];
  expect(await queue.renew([...jobs.values()].map((one) => one.leaseId))).not.toContain("lost");
  expect(await queue.sizes?.()).toMatchObject({ ready: 0, held: 6 });
  for (const body of ["acked", "own", "high"]) expect(await settle(queue, of(body), ACK)).toEqual(["done"]);
  expect(await settle(queue, of("retried"), RETRY)).toEqual(["done"]);
  expect(await settle(queue, of("released"), RELEASE)).toEqual(["done"]);
  expect(await settle(queue, of("dead"), DEAD)).toEqual(["done"]);
  const again = new Set<string>();
  while (again.size < 2) {
    const deliveries = await next(queue);
    await settle(queue, deliveries, ACK);
    for (const { body } of deliveries) again.add(String(body));
  }
  expect(await queue.sizes?.()).toEqual({ ready: 0, delayed: 0, held: 0, dead: 1, paused: false });
}

async function next(queue: BrokerQueue): Promise<readonly Delivery[]> {
  return (await queue.claim({ leaseId: leaseId(), max: 10, waitMs: 1_000 })).deliveries;
}

interface User {
  readonly name: string;
  readonly role: Role;
  readonly permissions: string;
  /** The one that is taken from it. */
  readonly lacks?: Entry;
}

/** As it stands in the README, for a queue and a stream of the user's own. */
function as(user: string, text: string): string {
  return text.replaceAll("ORDERS", streamOf(user)).replaceAll("orders", user);
}

function streamOf(user: string): string {
  return `SOURCE-${user}`;
}

function userOf(name: string, role: Role, lacks?: Entry): User {
  const entries = ENTRIES.filter((one) => role.parts.includes(one.part) && one !== lacks);
  const permissions = as(name, granted([...OWN, ...entries]));
  return { name, role, permissions, ...(lacks === undefined ? {} : { lacks }) };
}

const whole = Object.entries(ROLES).map(([name, role]) => userOf(name, role));
const lacking = Object.entries(ROLES).flatMap(([name, role]) =>
  ENTRIES.filter(({ part }) => role.parts.includes(part)).map((entry, at) =>
    userOf(`${name}-${at}`, role, entry),
  ),
);

let server: NatsServer;
let operator: Operator;
beforeAll(async () => {
  const users = [...whole, ...lacking].map(
    ({ name, permissions }) => `{ user: "${name}", password: "p", ${permissions} }`,
  );
  server = await startNats({
    config: `authorization { users: [ { user: "all", password: "p" }\n${users.join("\n")} ] }`,
  });
  operator = await Operator.connect(server.url, { user: "all", pass: "p" });
});
afterAll(async () => {
  await operator.close();
  await server.stop();
});

function publish(stream: string, body: string): Promise<void> {
  return operator.publish(`at.${stream}`, body);
}

async function messages(stream: string): Promise<number> {
  return (await operator.api<{ state: { messages: number } }>(`STREAM.INFO.${stream}`)).state.messages;
}

/** Takes a message and gives it back as often as the server hands it out; ends when the server has noted that. */
async function useUp(stream: string, queue: string): Promise<void> {
  const deadline = Date.now() + 10_000;
  while ((await messages(`EDDY_EXHAUSTED_${queue}`)) === 0) {
    if (Date.now() > deadline) throw new Error("The server noted nothing");
    const next = `$JS.API.CONSUMER.MSG.NEXT.${stream}.eddy`;
    // What the server hands out keeps its own subject, by which the client's shared inbox would not know it.
    const one = await operator.nc.request(next, PULL, { timeout: 5_000, noMux: true });
    // A status has no subject to answer to.
    if (one.reply) await operator.nc.request(one.reply, "-NAK");
  }
}

async function live({ name, role }: User): Promise<void> {
  const stream = streamOf(name);
  const retention = { retention: "workqueue", discard: "new" };
  await operator.api(`STREAM.CREATE.${stream}`, { name: stream, subjects: [`at.${stream}`], ...retention });
  const config = {
    durable_name: "eddy",
    ack_policy: "explicit",
    ack_wait: 60e9,
    max_deliver: role.maxDeliver,
  };
  await operator.api(`CONSUMER.DURABLE.CREATE.${stream}.eddy`, { stream_name: stream, config });
  const all = new NatsBroker({ url: server.url, user: "all", password: "p" });
  const broker = new NatsBroker({
    url: server.url,
    user: name,
    password: "p",
    sources: { [name]: { stream, consumer: "eddy" } },
    leastMaxDeliver: 2,
  });
  try {
    await all.queue(name, LONG).open();
    await role.life(broker.queue(name, LONG), stream);
  } finally {
    await broker.close();
    await all.close();
  }
}

test("the list was read", () => {
  expect([0, 1, 2].map((part) => ENTRIES.filter((one) => one.part === part).length)).toEqual([5, 1, 6]);
  expect(ENTRIES).toHaveLength(BLOCKS[1]?.match(/"[^"]+"/g)?.length ?? 0);
  expect(BLOCKS).toHaveLength(2);
});

test.each(whole.map((user) => [user.name, user] as const))("whoever %s: all of it works", async (_, user) => {
  await live(user);
});

test.each(lacking.map((user) => [`${user.name}: ${user.lacks?.subject}`, user] as const))(
  "is not idle: %s",
  async (_, user) => {
    const error = await live(user).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    const { operation, subject } = user.lacks as Entry;
    if (subject === SILENT) expect(error).toBeInstanceOf(StaysThere);
    else {
      expect(error).toBeInstanceOf(BrokerRefusedError);
      expect(tellsOf(error, operation, as(user.name, subject))).toBe(true);
    }
  },
);
