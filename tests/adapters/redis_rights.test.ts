/** A Redis user who may not do all that is needed: refused when the queue is opened, with what is missing, and not in the middle of a move. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { RedisBroker } from "../../adapters/redis/mod.ts";
import { ENQUEUE, STAGE } from "../../adapters/redis/scripts/enqueue.ts";
import { EXCHANGE } from "../../adapters/redis/scripts/exchange.ts";
import { ABANDON, CLEAR, PAUSE, PEEK, REDRIVE, SIZES } from "../../adapters/redis/scripts/manage.ts";
import { type Gateway, startGateway } from "../../runtimes/bun/gateway/gateway.ts";
import type { BrokerQueue } from "../../src/broker.ts";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import { ACK, drain, ids, job, leaseId, settle, take } from "../support/conformance_steps.ts";
import { type RedisServer, startRedis } from "../support/redis_server.ts";

const SETTINGS = { leaseMs: 60_000, requestTimeoutMs: 10_000, dedupeWindowMs: 60_000 };
const ALL = ["~eddy:*", "&eddy:*", "+@all"];

let server: RedisServer;
let gateway: Gateway;
beforeAll(async () => {
  server = await startRedis();
  // A database of its own, too.
  gateway = startGateway({ redis: `redis://guest:secret-word@127.0.0.1:${server.port}/5`, token: "t" });
});
afterAll(async () => {
  await gateway.stop();
  await server.stop();
});

/** Sets what the user may do, from the next command on. */
async function grant(...rules: string[]): Promise<void> {
  await server.command("ACL", "SETUSER", "guest", "reset", "on", ">secret-word", ...rules);
}

function queueOf(name: string): BrokerQueue {
  return new RedisBroker({ url: gateway.url, token: "t", onWarning: () => {} }).queue(name, SETTINGS);
}

async function failure(act: Promise<unknown>): Promise<BrokerError> {
  const error = await act.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(BrokerError);
  expect(Bun.inspect(error)).not.toContain("secret-word");
  return error as BrokerError;
}

/** All commands that the scripts beside OPEN run. */
const COMMANDS = [
  ...new Set(
    [ABANDON, CLEAR, ENQUEUE, EXCHANGE, PAUSE, PEEK, REDRIVE, SIZES, STAGE].flatMap((script) =>
      [...script.matchAll(/\b(?:call|try|send)\('([A-Z]+)'/g)].map(([, command]) => command as string),
    ),
  ),
].filter((command) => command !== "INFO");

test("who may do all that is needed, and no more than that, is served", async () => {
  const needed = [...COMMANDS, "INFO", "EVALSHA", "EVAL", "SELECT", "SUBSCRIBE"];
  await grant("~eddy:{served}:*", "&eddy:{served}:*", ...needed.map((command) => `+${command}`));
  const queue = queueOf("served");
  await queue.open();
  const watch = await queue.watch?.(
    () => {},
    () => {},
  );
  await queue.enqueue(leaseId(), [job("a"), job("b")]);
  expect(await settle(queue, await take(queue, 1), ACK)).toEqual(["done"]);
  expect(ids(await drain(queue))).toEqual(["b"]);
  await watch?.close();
});

test("who may not run one of the commands is refused at the opening, whichever it is", async () => {
  expect(COMMANDS.length).toBeGreaterThan(25);
  for (const command of COMMANDS) {
    await grant(...ALL, `-${command}`);
    const error = await failure(queueOf("denied").open());
    expect([command, error.name]).toEqual([command, "BrokerRefusedError"]);
    // What each script begins with is denied before any can be tried.
    if (command !== "TIME" && command !== "HMGET") expect(error.message).toContain(`(${command}`);
  }
});

test("so is who may not tell of new work, or reach some of the keys", async () => {
  await grant("~eddy:*", "+@all");
  expect((await failure(queueOf("silent").open())).message).toContain("(PUBLISH to eddy:{silent}:wake)");
  await grant("&eddy:*", "+@all", "~eddy:{some}:queue", "~eddy:{some}:ready:*", "~eddy:{some}:returned");
  expect(await failure(queueOf("some").open())).toBeInstanceOf(BrokerRefusedError);
});

test("rights that are taken away later: a worker ends, an enqueue is not said to have changed nothing", async () => {
  await grant(...ALL);
  const queue = queueOf("later");
  await queue.open();
  await grant("~eddy:*", "+@all");
  const jobs = [job("a")];
  const error = await failure(queue.enqueue("one-request", jobs));
  expect(error).not.toBeInstanceOf(BrokerRefusedError);
  expect(error.unchanged).toBe(false);
  expect(await queue.enqueue("one-request", jobs)).toMatchObject([{ duplicate: false }]);
  expect(await queue.sizes?.()).toMatchObject({ ready: 1 });
  await grant(...ALL, "-zadd");
  expect(await failure(take(queue))).toBeInstanceOf(BrokerRefusedError);
});

test("one who may not subscribe is told so at once", async () => {
  await grant(...ALL, "-subscribe");
  const queue = queueOf("deaf");
  await queue.open();
  const error = await failure(
    queue.watch?.(
      () => {},
      () => {},
    ) as Promise<unknown>,
  );
  expect(error.message).toContain("has no subscriptions over HTTP (it answered 400)");
});

test("a gateway that cannot enter its Redis says why, without the password", async () => {
  await grant(...ALL);
  const refusals = [];
  for (const url of ["redis://guest:other-word@", "redis://guest:secret-word@"]) {
    const other = startGateway({ redis: `${url}127.0.0.1:${server.port}/99`, token: "t" });
    const queue = new RedisBroker({ url: other.url, token: "t" }).queue("q", SETTINGS);
    refusals.push((await failure(queue.open())).message.replace(/^.*answered/, ""));
    await other.stop();
  }
  expect(refusals).toEqual([
    " an error (ERR Redis refuses the connection: WRONGPASS)",
    " an error (ERR Redis refuses the connection: ERR DB index is out of range)",
  ]);
});
