/** The permissions that the README lists for users of a nats-server: with them each user's whole life works, and without any one of them something does not. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import type { BrokerQueue, Delivery, QueueSettings } from "../../src/broker.ts";
import { BrokerRefusedError } from "../../src/errors.ts";
import {
  ACK,
  DEAD,
  ids,
  job,
  leaseId,
  put,
  RELEASE,
  RETRY,
  settle,
  take,
} from "../support/conformance_steps.ts";
import { LONG } from "../support/nats_fixture.ts";
import { BLOCKS, entriesOf, granted, tellsOf } from "../support/nats_rights.ts";
import { type NatsServer, startNats } from "../support/nats_server.ts";

setDefaultTimeout(30_000);

const BLOCK = BLOCKS[0] ?? "";
/** The queue that the README speaks of. */
const QUEUE = "emails";

const ENTRIES = entriesOf(BLOCK);

/** Whoever is given some parts of the lists, and what it does by them. */
interface Role {
  readonly parts: readonly number[];
  /** Whether an administrator made its queue. */
  readonly finds: boolean;
  readonly life: (
    queue: BrokerQueue,
    again: (settings: Partial<QueueSettings>) => BrokerQueue,
  ) => Promise<void>;
}

const ROLES: Readonly<Record<string, Role>> = {
  producer: { parts: [0], finds: true, life: produce },
  worker: { parts: [0, 1], finds: true, life: work },
  keeper: { parts: [0, 1, 3], finds: true, life: tend },
  owner: {
    parts: [0, 1, 2, 3],
    finds: false,
    async life(queue, again) {
      await tend(queue);
      await again({ dedupeWindowMs: LONG.dedupeWindowMs * 2 }).open();
    },
  },
};

async function produce(queue: BrokerQueue): Promise<void> {
  await queue.open();
  await put(queue, job("high", { priority: "high" }), "normal", job("low", { priority: "low" }));
  await put(queue, job("later", { delayMs: 1 }));
  await put(queue, job("once", { dedupe: true }));
  expect(await put(queue, job("once", { dedupe: true }))).toEqual([{ id: "once", duplicate: true }]);
}

async function work(queue: BrokerQueue): Promise<void> {
  await produce(queue);
  const jobs = new Map<string, Delivery>();
  while (jobs.size < 5) for (const one of await next(queue)) jobs.set(one.id, one);
  const of = (id: string) => [jobs.get(id) as Delivery];
  expect(await queue.renew([...jobs.values()].map((one) => one.leaseId))).not.toContain("lost");
  expect(await queue.peek?.("held", 10)).toHaveLength(5);
  expect(await settle(queue, of("high"), ACK)).toEqual(["done"]);
  expect(await settle(queue, of("normal"), RETRY)).toEqual(["done"]);
  expect(await settle(queue, of("low"), { kind: "retry", delayMs: 60_000 })).toEqual(["done"]);
  expect(await settle(queue, of("later"), RELEASE)).toEqual(["done"]);
  expect(await settle(queue, of("once"), DEAD)).toEqual(["done"]);
  const rest = new Set<string>();
  while (rest.size < 2) {
    const deliveries = await next(queue);
    await settle(queue, deliveries, ACK);
    for (const id of ids(deliveries)) rest.add(id);
  }
  expect(await take(queue)).toEqual([]);
  expect(await queue.sizes?.()).toEqual({ ready: 0, delayed: 1, held: 0, dead: 1, paused: false });
}

async function tend(queue: BrokerQueue): Promise<void> {
  await work(queue);
  expect(ids((await queue.peek?.("dead", 10)) ?? [])).toEqual(["once"]);
  await queue.pause?.();
  expect(await queue.redrive?.({ limit: 10 })).toBe(1);
  expect(await take(queue)).toEqual([]);
  await queue.resume?.();
  await settle(queue, await next(queue), DEAD);
  await put(queue, "a", "b");
  expect(await queue.clear?.(["ready", "delayed", "dead"])).toBe(4);
}

async function next(queue: BrokerQueue): Promise<readonly Delivery[]> {
  return (await queue.claim({ leaseId: leaseId(), max: 10, waitMs: 1_000 })).deliveries;
}

interface User {
  readonly name: string;
  readonly role: Role;
  readonly queue: string;
  /** In the words of the server's configuration. */
  readonly permissions: string;
}

/** What may stand for every queue's. */
function wild(permissions: string): string {
  return permissions.replace(/EDDY_(JOBS|DEAD)_emails|emails/g, "*");
}

const of = (role: Role) => ENTRIES.filter(({ part }) => role.parts.includes(part));
const whole: readonly User[] = [
  ...Object.entries(ROLES).flatMap(([name, role]): User[] => [
    { name, role, queue: name, permissions: granted(of(role)).replaceAll(QUEUE, name) },
    { name: `${name}-any`, role, queue: `${name}-any`, permissions: wild(granted(of(role))) },
  ]),
  { name: "verbatim", role: ROLES.owner as Role, queue: QUEUE, permissions: BLOCK },
];
/** Of each role those that lack one entry each. */
const lacking = Object.entries(ROLES).map(([name, role]) => ({
  name,
  users: of(role).map((entry, at) => {
    const queue = `${name}-${at}`;
    const rest = of(role).filter((one) => one !== entry);
    return { name: queue, role, queue, permissions: granted(rest).replaceAll(QUEUE, queue), entry };
  }),
}));

let server: NatsServer;
beforeAll(async () => {
  const users = [...whole, ...lacking.flatMap((one) => one.users)].map(
    ({ name, permissions }) => `{ user: "${name}", password: "p", ${permissions} }`,
  );
  server = await startNats({
    config: `authorization { users: [ { user: "all", password: "p" }\n${users.join("\n")} ] }`,
  });
});
afterAll(() => server.stop());

async function live({ name, role, queue }: User): Promise<void> {
  const all = new NatsBroker({ url: server.url, user: "all", password: "p" });
  const broker = new NatsBroker({ url: server.url, user: name, password: "p" });
  const opened = (settings: Partial<QueueSettings>) => broker.queue(queue, { ...LONG, ...settings });
  try {
    if (role.finds) await all.queue(queue, LONG).open();
    await role.life(opened({}), opened);
  } finally {
    await broker.close();
    await all.close();
  }
}

test("the lists were read", () => {
  expect([0, 1, 2, 3].map((part) => ENTRIES.filter((one) => one.part === part).length)).toEqual([
    10, 9, 3, 5,
  ]);
  expect(ENTRIES).toHaveLength(BLOCK.match(/"[^"]+"/g)?.length ?? 0);
});

test.each(whole.map((user) => [user.name, user] as const))("%s: all that it does works", async (_, user) => {
  await live(user);
});

describe.each(lacking.map(({ name, users }) => [name, users] as const))("%s", (_, users) => {
  test("no permission is idle: without any one of them a verb is refused, and says which it lacks", async () => {
    for (const user of users) {
      const error = await live(user).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      const { operation, subject } = user.entry;
      expect([subject, error]).toEqual([subject, expect.any(BrokerRefusedError)]);
      const lacked = subject.replaceAll(QUEUE, user.queue);
      expect([lacked, tellsOf(error, operation, lacked)]).toEqual([lacked, true]);
    }
  });
});
