/** Commands on a real NATS server: a login that it refuses is told by the variables that hold it, and looks leave nothing behind. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { nkeys } from "nats.ws";
import { chooseBroker } from "../../runtimes/cli/broker_spec.ts";
import { startNats } from "../support/nats_server.ts";
import { Operator } from "../support/nats_tap.ts";
import { eddy } from "./process.ts";

// Starts a server and processes.
setDefaultTimeout(30_000);

test("a login that is refused is told by its variables, never by what they hold", async () => {
  const [known, unknown] = [nkeys.createUser(), nkeys.createUser()];
  const seedOf = (user: typeof known) => new TextDecoder().decode(user.getSeed());
  const users = `{ user: "ada", password: "hush-1" }, { nkey: "${known.getPublicKey()}" }`;
  const server = await startNats({ config: `authorization { users: [ ${users} ] }` });
  try {
    const stats = (env: Record<string, string>) =>
      eddy(["stats", "emails"], { env: { EDDY_BROKER: server.url, ...env } });
    const cases: [Record<string, string>, string][] = [
      [
        {},
        "whoever does not log in; set EDDY_NATS_CREDS, or EDDY_BROKER_NKEY_SEED, or EDDY_NATS_USER and EDDY_NATS_PASSWORD, or EDDY_BROKER_TOKEN",
      ],
      [{ EDDY_NATS_USER: "ada" }, "EDDY_NATS_USER without a password; set EDDY_NATS_PASSWORD"],
      [
        { EDDY_NATS_USER: "ada", EDDY_NATS_PASSWORD: "hush-2" },
        "EDDY_NATS_USER and EDDY_NATS_PASSWORD; set them to a user it knows",
      ],
      [
        { EDDY_BROKER_TOKEN: "hush-3" },
        "EDDY_BROKER_TOKEN; set the right one, or EDDY_NATS_CREDS, or EDDY_BROKER_NKEY_SEED, or EDDY_NATS_USER and EDDY_NATS_PASSWORD",
      ],
      [{ EDDY_BROKER_NKEY_SEED: seedOf(unknown) }, "EDDY_BROKER_NKEY_SEED; set the seed of a user it knows"],
    ];
    for (const [env, told] of cases) {
      const { code, out, err } = await stats(env);
      expect([code, out]).toEqual([1, ""]);
      expect(err).toBe(`Cannot log in at ${new URL(server.url).origin}: the server refuses ${told}\n`);
    }
    for (const env of [
      { EDDY_NATS_USER: "ada", EDDY_NATS_PASSWORD: "hush-1" },
      { EDDY_BROKER_NKEY_SEED: seedOf(known) },
    ]) {
      const right = await stats(env);
      expect([right.code, right.err]).toEqual([0, ""]);
    }
    const none = await stats({ EDDY_BROKER_NKEY_SEED: `${seedOf(known).slice(0, -1)}!` });
    expect([none.code, none.out, none.err]).toEqual([
      1,
      "",
      "Cannot use the broker: EDDY_BROKER_NKEY_SEED is no seed of a user's nkey; give the text that begins with SU\n",
    ]);
  } finally {
    await server.stop();
  }
});

test("what looks at a queue, or needs its jobs, makes none of a mistyped name", async () => {
  const server = await startNats();
  const operator = await Operator.connect(server.url);
  try {
    const run = (...args: string[]) => eddy(args, { env: { EDDY_BROKER: server.url } });
    const streams = async () => (await operator.api<{ streams: string[] | null }>("STREAM.NAMES")).streams;
    const commands = [["peek"], ["dead"], ["redrive"], ["clear", "--state", "ready"], ["resume"]] as const;
    for (const [command, ...flags] of commands) {
      const { code, out, err } = await run(command, "emial", ...flags);
      expect([command, code, out]).toEqual([command, 1, ""]);
      expect(err).toBe(
        "Cannot open queue emial: it is not there, for the server has no stream EDDY_JOBS_emial; name another, or enqueue a job first\n",
      );
    }
    expect((await run("stats", "emial")).out).toMatch(/\nemial +0 +0 +0 +0 +not there yet\n$/);
    expect(await streams()).toBeNull();
    expect((await run("pause", "emails")).code).toBe(0);
    expect((await streams())?.sort()).toEqual(["EDDY_DEAD_emails", "EDDY_JOBS_emails"]);
    const { out } = await run("stats", "emails", "emial", "--json");
    const zeros = { ready: 0, delayed: 0, held: 0, dead: 0 };
    expect(JSON.parse(out)).toEqual([
      { queue: "emails", ...zeros, paused: true },
      { queue: "emial", ...zeros, paused: false, absent: true },
    ]);
  } finally {
    await operator.close();
    await server.stop();
  }
});

test.each([
  [{ EDDY_NATS_PASSWORD: "hush" }, "EDDY_NATS_PASSWORD is set without EDDY_NATS_USER; set both or none"],
  [
    { EDDY_BROKER_TOKEN: "hush\n" },
    "EDDY_BROKER_TOKEN is a text that begins or ends with white space; take that away",
  ],
  [
    { EDDY_NATS_USER: "ada", EDDY_NATS_PASSWORD: "hush " },
    "EDDY_NATS_PASSWORD is a text that begins or ends with white space; take that away",
  ],
  [
    { EDDY_BROKER_NKEY_SEED: "SUhush\n" },
    "EDDY_BROKER_NKEY_SEED is a text that begins or ends with white space; take that away",
  ],
])("a login that cannot be meant is refused at once: %o", (env, told) => {
  expect(() => chooseBroker("ws://127.0.0.1:9", env)).toThrow(new Error(`Cannot use the broker: ${told}`));
});

test("an address with a fragment is refused at once", () => {
  const fault = "a URL with a fragment (#…) in it; leave it out";
  expect(() => chooseBroker("ws://127.0.0.1:9/#x", {})).toThrow(
    `Cannot use the broker: its name is ${fault}`,
  );
});

test("a body above what the server takes is told by its max_payload, with the mend", async () => {
  const server = await startNats({ maxPayload: 1_048_576 });
  try {
    const big = JSON.stringify("x".repeat(1_100_000));
    const enqueue = ["enqueue", "emails", "--max-body-bytes", "2000000"];
    const { code, err } = await eddy(enqueue, { env: { EDDY_BROKER: server.url }, input: `${big}\n` });
    expect(code).toBe(1);
    expect(err).toContain(
      "above the limit of 1032192 bytes: the server's max_payload (or the stream's max_msg_size) less 16 KiB for headers; raise it there, or store",
    );
    const small = ["enqueue", "emails", '"12345"', "--max-body-bytes", "5"];
    const own = await eddy(small, { env: { EDDY_BROKER: server.url } });
    expect(own.err).toContain("above the limit of 5 bytes, which --max-body-bytes raises");
  } finally {
    await server.stop();
  }
});
