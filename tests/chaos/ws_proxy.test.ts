/**
 * Each fault of a WebSocket's way, between a worker and a real nats-server: every job is finished, the loop works again by itself, what it tells is clear and holds neither a body nor
 * a credential, and what the server was told already is not done twice.
 */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import {
  BrokerError,
  type BrokerQueue,
  defineWorker,
  type EddyEvent,
  Producer,
  queue,
  startWorker,
} from "../../src/mod.ts";
import { idsOf, leaseId, put, take } from "../support/conformance_steps.ts";
import { type NatsServer, startNats } from "../support/nats_server.ts";
import { WebSocketProxy } from "../support/ws_proxy.ts";

setDefaultTimeout(40_000);

const TOKEN = "hush-token";
const BODY = "hush-body";
/**
 * Where leases or requests are to end: what was handed out into a connection that died comes back when its lease does. And where
 * neither may, however slow the machine is.
 */
const HASTY = { leaseMs: 3_000, requestTimeoutMs: 500 };
const PATIENT = { leaseMs: 30_000, requestTimeoutMs: 5_000 };
/** The first request of a claim, and the confirmation of an ack, as they are on the wire. */
const CLAIM = "CONSUMER.MSG.NEXT";
const ACK = "+ACK";
/** What a client is sent of a job. */
const DELIVERY = "$JS.ACK";
const REPLY = "MSG _INBOX";

let server: NatsServer;
let proxy: WebSocketProxy;
beforeAll(async () => {
  server = await startNats({ config: `authorization { token: "${TOKEN}" }` });
  proxy = await WebSocketProxy.start(server.webSocketPort);
});
afterEach(() => proxy.calm());
afterAll(async () => {
  await proxy.stop();
  await server.stop();
});

function connect(url: string): NatsBroker {
  return new NatsBroker({
    url,
    token: TOKEN,
    pingEveryMs: 200,
    pongWithinMs: 200,
    connectTimeoutMs: 300,
    reconnectMaxMs: 100,
  });
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited 20 s in vain until ${what}`);
    await Bun.sleep(5);
  }
}

/** A worker behind the proxy, and a producer and an eye before it. */
class Stage {
  readonly runs = new Map<string, number>();
  readonly errors: Error[] = [];
  readonly direct = connect(server.url);
  readonly broker = connect(proxy.url);
  readonly #work = queue<string>(`faults-${Math.random().toString(36).slice(2)}`);
  readonly #producer = new Producer({ broker: this.direct, platform: bunPlatform() });
  readonly #settled = new Set<string>();
  readonly #times: typeof HASTY;
  #worker: Awaited<ReturnType<typeof startWorker>> | undefined;
  #eye: BrokerQueue | undefined;

  constructor(times: typeof HASTY) {
    this.#times = times;
  }

  async begin(): Promise<void> {
    const platform = bunPlatform();
    this.#worker = await startWorker(
      defineWorker({
        graceMs: 1_000,
        queues: [
          this.#work.handle(
            async ({ id }) => {
              this.runs.set(id, (this.runs.get(id) ?? 0) + 1);
              await Bun.sleep(2);
            },
            {
              ...this.#times,
              prefetch: 4,
              concurrency: 2,
              maxAttempts: 100,
              backoff: () => 0,
            },
          ),
        ],
      }),
      { broker: this.broker, platform, on: (event) => this.#heard(event) },
    );
    this.#eye = this.direct.queue(this.#work.name, {
      leaseMs: this.#times.leaseMs,
      requestTimeoutMs: 2_000,
      dedupeWindowMs: 60_000,
    });
    await this.#eye.open();
  }

  #heard(event: EddyEvent): void {
    if (event.type === "brokerError" || event.type === "refused") this.errors.push(event.error);
    if (event.type === "settled") this.#settled.add(event.jobId);
  }

  /** Enqueues so many past the proxy, or through it. */
  async put(count: number, through = this.#producer): Promise<void> {
    await through.enqueueMany(
      this.#work,
      Array.from({ length: count }, () => ({ body: BODY })),
    );
  }

  producerBehindProxy(): Producer {
    return new Producer({ broker: this.broker, platform: bunPlatform(), requestTimeoutMs: 250 });
  }

  /** Resolves when so many jobs were finished, and nothing is left of any. */
  async done(count: number): Promise<void> {
    await until(`${count} jobs are finished`, () => this.runs.size === count);
    await until("nothing is left", async () => {
      const sizes = await this.#eye?.sizes?.();
      expect(sizes?.dead).toBe(0);
      return sizes !== undefined && sizes.ready + sizes.delayed + sizes.held === 0;
    });
  }

  async settled(count: number): Promise<void> {
    await until(`${count} jobs are settled`, () => this.#settled.size >= count);
  }

  async failed(because = ""): Promise<void> {
    const from = this.errors.length;
    await until("a request fails", () =>
      this.errors.slice(from).some(({ message }) => message.includes(because)),
    );
  }

  get repeats(): number {
    return [...this.runs.values()].filter((runs) => runs > 1).length;
  }

  async end(): Promise<void> {
    await this.#worker?.stop();
    await Promise.all([this.broker.close(), this.direct.close()]);
    for (const error of this.errors) {
      expect(error).toBeInstanceOf(BrokerError);
      expect(error.message).toMatch(
        /^Cannot [a-z]+.*: .{10}|^The nats broker did not answer [a-z]+ within \d+ ms$/,
      );
      const told = Bun.inspect(error) + String(error.cause);
      expect(told).not.toContain(TOKEN);
      expect(told).not.toContain(BODY);
    }
  }
}

interface Fault {
  readonly name: string;
  /** Does it while 20 jobs are on their way; resolves when it is over. */
  act(stage: Stage): Promise<void>;
  /** Whether the worker hears of it as of a request that failed. */
  readonly fails: boolean;
  /** Whether a job may run twice: only where a lease can end meanwhile, or a verdict is cut off before it arrives. */
  readonly mayRepeat?: boolean;
}

const FAULTS: readonly Fault[] = [
  ...(["there", "back"] as const).map(
    (way): Fault => ({
      name: `half-open: what goes ${way} is swallowed`,
      async act(stage) {
        proxy.deaden(way);
        await stage.failed();
        proxy.revive();
      },
      fails: true,
      mayRepeat: true,
    }),
  ),
  {
    name: "the answer of a claim is lost after its effect",
    act: () => proxy.loseReply(CLAIM, DELIVERY),
    fails: true,
  },
  {
    name: "the answer of an ack is lost after its effect",
    act: () => proxy.loseReply(ACK, REPLY),
    fails: true,
  },
  // A delivery cannot: TCP brings nothing twice. An answer can, from whatever repeats requests.
  { name: "an answer comes twice", act: () => proxy.repeat(REPLY), fails: false },
  {
    name: "a delay there",
    async act(stage) {
      proxy.delay(60, 0);
      await stage.settled(12);
    },
    fails: false,
  },
  {
    name: "a delay back",
    async act(stage) {
      proxy.delay(0, 60);
      await stage.settled(12);
    },
    fails: false,
  },
  {
    name: "a stall longer than the lease",
    async act() {
      proxy.freeze();
      await Bun.sleep(HASTY.leaseMs * 1.5);
      proxy.thaw();
    },
    fails: true,
    mayRepeat: true,
  },
  ...([401, 429, 500, 502] as const).map(
    (status): Fault => ({
      name: `the upgrade is answered ${status} in HTML`,
      async act(stage) {
        proxy.refuse(status);
        // Until a claim has waited for a connection in vain.
        await stage.failed("no WebSocket was opened there");
        proxy.admit();
      },
      fails: true,
      mayRepeat: true,
    }),
  ),
  { name: "a request breaks off", act: () => proxy.truncate("there", CLAIM), fails: true },
  {
    name: "a verdict breaks off",
    act: () => proxy.truncate("there", ACK),
    fails: true,
  },
  { name: "a delivery breaks off", act: () => proxy.truncate("back", DELIVERY), fails: true },
  {
    name: "the upgrade's answer breaks off",
    async act(stage) {
      const broken = proxy.truncate("back", "101 Switching");
      proxy.cut();
      await broken;
      await stage.settled(12);
    },
    fails: true,
    mayRepeat: true,
  },
];

describe("between a worker and its server", () => {
  for (const fault of FAULTS) {
    test(fault.name, async () => {
      const stage = new Stage(fault.fails ? HASTY : PATIENT);
      await stage.begin();
      try {
        const acted = fault.act(stage);
        await stage.put(20);
        await acted;
        await stage.put(10);
        await stage.done(30);
        if (fault.fails) expect(stage.errors).not.toEqual([]);
        else expect(stage.errors.map(({ message }) => message)).toEqual([]);
        if (fault.mayRepeat !== true) expect(stage.repeats).toBe(0);
      } finally {
        proxy.calm();
        await stage.end();
      }
    });
  }
});

describe("between a producer and its server", () => {
  const PUT = "PUB eddy.jobs";
  const faults: readonly (readonly [string, () => Promise<void>, typeof HASTY])[] = [
    ["the answer is lost after the effect", () => proxy.loseReply(PUT, REPLY), HASTY],
    ["the request breaks off", () => proxy.truncate("there", PUT), HASTY],
    ["the answer comes twice", () => proxy.repeat(REPLY), PATIENT],
    ["the answer breaks off", () => proxy.truncate("back", REPLY), HASTY],
  ];
  for (const [name, act, times] of faults) {
    test(`${name}: the jobs are in, once`, async () => {
      const stage = new Stage(times);
      await stage.begin();
      try {
        const producer = stage.producerBehindProxy();
        await stage.put(1, producer);
        await stage.done(1);
        const acted = act();
        await stage.put(5, producer);
        await acted;
        await stage.done(6);
        expect(stage.repeats).toBe(0);
      } finally {
        await stage.end();
      }
    });
  }
});

test("what is given back, and whose copy's answer is lost, comes once: the copy's original is ended over the next connection", async () => {
  const broker = connect(proxy.url);
  const eye = connect(server.url);
  const settings = { leaseMs: 20_000, requestTimeoutMs: 2_000, dedupeWindowMs: 60_000 };
  try {
    const given = broker.queue("given-back", settings);
    const seen = eye.queue("given-back", settings);
    await given.open();
    await seen.open();
    await put(seen, ...idsOf("a", 4));
    const id = leaseId();
    expect(await take(given, 4, id)).toHaveLength(4);
    const lost = proxy.loseReply("PUB eddy.jobs", REPLY);
    await expect(given.abandon?.([id])).rejects.toBeInstanceOf(BrokerError);
    await lost;
    await until("nothing is held any more", async () => (await seen.sizes?.())?.held === 0);
    expect(await seen.sizes?.()).toMatchObject({ ready: 4, delayed: 0, dead: 0 });
    const again = await take(seen, 8);
    expect(again.map((one) => [one.id, one.attempt])).toEqual(idsOf("a", 4).map((one) => [one, 1]));
  } finally {
    await Promise.all([broker.close(), eye.close()]);
  }
});
