/** Why no connection comes about: told apart by message and kind, each tried on a real socket, on Bun and on Deno. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createServer as createWebServer, type Server as WebServer } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import { resolve } from "node:path";
import {
  type ConnectFailure,
  NatsBroker,
  type NatsBrokerOptions,
  NatsConnectError,
} from "../../adapters/nats/mod.ts";
import { BrokerError, BrokerRefusedError } from "../../src/mod.ts";
import { type NatsServer, startNats } from "../support/nats_server.ts";

setDefaultTimeout(30_000);

const SETTINGS = { leaseMs: 30_000, requestTimeoutMs: 300, dedupeWindowMs: 600_000 };
const SECRET = "hush-hush";

let nats: NatsServer;
let locked: NatsServer;
let web: Served;
let silent: Served;
let closing: Served;

interface Served {
  readonly port: number;
  readonly stop: () => void;
}

function serve(server: Server | WebServer): Promise<Served> {
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => open.delete(socket));
  });
  return new Promise((ready) => {
    server.listen(0, "127.0.0.1", () => {
      const stop = () => {
        server.close();
        for (const socket of open) socket.destroy();
      };
      ready({ port: (server.address() as { port: number }).port, stop });
    });
  });
}

beforeAll(async () => {
  [nats, locked, web, silent, closing] = await Promise.all([
    startNats(),
    startNats({ config: `authorization { token: "${SECRET}" }` }),
    serve(createWebServer((_request, response) => response.end("hello"))),
    serve(createServer()),
    serve(createServer((socket) => socket.destroy())),
  ]);
});

afterAll(async () => {
  for (const one of [web, silent, closing]) one?.stop();
  await Promise.all([nats?.stop(), locked?.stop()]);
});

interface Case {
  readonly name: string;
  readonly options: () => NatsBrokerOptions;
  readonly kind: ConnectFailure;
  readonly text: string;
}

const MEND = "is that the port of nats-server's websocket {} block?";

const CASES: readonly Case[] = [
  {
    name: "nothing listens there",
    options: () => ({ url: "ws://127.0.0.1:9" }),
    kind: "refused",
    text: "nobody listens at that port; is the server up, and does it have a websocket {} block?",
  },
  {
    name: "the port for plain NATS clients",
    options: () => ({ url: `ws://127.0.0.1:${nats.port}` }),
    kind: "notWebSocket",
    text: `what listens there is no WebSocket listener (the port for plain NATS clients is none); ${MEND}`,
  },
  {
    name: "a web server",
    options: () => ({ url: `ws://127.0.0.1:${web.port}` }),
    kind: "status",
    text: `a web server answered 200; ${MEND}`,
  },
  {
    name: "whoever closes at once",
    options: () => ({ url: `ws://127.0.0.1:${closing.port}` }),
    kind: "lost",
    text: "the connection was closed without an answer",
  },
  {
    name: "a name without an address",
    options: () => ({ url: "ws://no-such-host.invalid" }),
    kind: "unknownHost",
    text: "its host's name is not known (DNS)",
  },
  {
    name: "wss:// to a listener without TLS",
    options: () => ({ url: `wss://127.0.0.1:${nats.webSocketPort}` }),
    kind: "tls",
    text: "TLS could not be agreed on; a listener with no_tls is reached by ws://",
  },
  {
    name: "whoever says nothing",
    options: () => ({ url: `ws://127.0.0.1:${silent.port}`, connectTimeoutMs: 100 }),
    kind: "timeout",
    text: "nothing answered within 100 ms",
  },
  {
    name: "a server that does not know the token",
    options: () => ({ url: locked.url, token: "wrong-one" }),
    kind: "login",
    text: "refuses the credentials; give the right token",
  },
];

describe("on Bun", () => {
  const OPENED: readonly (readonly [string, () => unknown, ConnectFailure, string])[] = [
    [
      "answers nothing",
      () => undefined,
      "notGiven",
      "openWebSocket answered undefined, which is no WebSocket; give",
    ],
    ["is async", async () => {}, "notGiven", "openWebSocket answered a Promise, which is no WebSocket; give"],
    [
      "throws",
      () => {
        throw new RangeError(SECRET);
      },
      "unopened",
      "no WebSocket was opened there at the last try: openWebSocket threw RangeError",
    ],
  ];
  test.each(OPENED)("an openWebSocket that %s", async (_, openWebSocket, kind, text) => {
    const broker = new NatsBroker({ url: nats.url, openWebSocket: openWebSocket as () => WebSocket });
    try {
      const error = await broker
        .queue("q", SETTINGS)
        .open()
        .catch((thrown: unknown) => thrown);
      // What no other try can mend is final.
      expect(error).toBeInstanceOf(kind === "notGiven" ? BrokerRefusedError : BrokerError);
      expect((error as Error).message).toContain(text);
      expect((error as Error).message).not.toContain(SECRET);
      expect(((error as Error).cause as NatsConnectError).kind).toBe(kind);
    } finally {
      await broker.close();
    }
  });

  test("the longest times are none that fire at once", async () => {
    const longest = 2_147_483_647;
    const broker = new NatsBroker({
      url: nats.url,
      connectTimeoutMs: longest,
      pingEveryMs: longest,
      pongWithinMs: longest,
      reconnectMaxMs: longest,
    });
    try {
      await broker.queue("q", { ...SETTINGS, requestTimeoutMs: 20_000 }).open();
    } finally {
      await broker.close();
    }
  });

  test.each(CASES)("$name", async ({ options, kind, text }) => {
    const broker = new NatsBroker(options());
    try {
      const error = await broker
        .queue("q", SETTINGS)
        .open()
        .then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
      expect(error).toBeInstanceOf(kind === "login" ? BrokerRefusedError : BrokerError);
      expect((error as Error).message).toContain(text);
      const { cause } = error as BrokerError;
      expect(cause).toBeInstanceOf(NatsConnectError);
      expect((cause as NatsConnectError).kind).toBe(kind);
    } finally {
      await broker.close();
    }
  });
});

const VAGUE: ReadonlySet<ConnectFailure> = new Set<ConnectFailure>(["notWebSocket", "lost", "unopened"]);

describe("on Deno", () => {
  test("the same, over its own WebSocket and over ours", async () => {
    const cases = CASES.map(({ options, kind, text }) => ({ options: options(), kind, text }));
    const program = resolve(import.meta.dir, "../runtimes/deno/programs/nats_dialling.ts");
    const deno = Bun.spawn(
      [
        resolve(import.meta.dir, "../../node_modules/.bin/deno"),
        "run",
        "--quiet",
        "--no-prompt",
        "--allow-net",
        "--allow-env",
        "--allow-read",
        program,
        JSON.stringify({ cases: cases.map(({ options }) => options), settings: SETTINGS }),
      ],
      { stdout: "pipe", stderr: "pipe" },
    );
    const [out, errors] = await Promise.all([
      new Response(deno.stdout).text(),
      new Response(deno.stderr).text(),
      deno.exited,
    ]);
    expect(errors).toBe("");
    const told = JSON.parse(out) as { socket: string; kind: string; message: string }[];
    expect(told.map(({ socket }) => socket)).toEqual(
      ["ours", "its own"].flatMap((socket) => cases.map(() => socket)),
    );
    for (const [index, { socket, kind, message }] of told.entries()) {
      const expected = cases[index % cases.length] as { kind: ConnectFailure; text: string };
      // Whether the runtime's own sees an answer or only its end is a matter of luck.
      if (socket === "its own" && VAGUE.has(expected.kind)) {
        expect(VAGUE).toContain(kind as ConnectFailure);
      } else {
        expect(kind).toBe(expected.kind);
        expect(message).toContain(expected.text);
      }
    }
  });
});
