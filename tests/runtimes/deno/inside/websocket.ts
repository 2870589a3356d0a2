/**
 * The WebSocket client of the Deno Platform against Deno's own server, and against servers that misbehave.
 *
 * @module
 */
import { DenoWebSocket } from "../../../../runtimes/deno/websocket.ts";
import { acceptOf } from "../../../../runtimes/deno/websocket_handshake.ts";
import { same, that } from "../../../support/conformance_assert.ts";

/** What a socket went through, in order, until it closed. */
function ended(socket: DenoWebSocket): Promise<string[]> {
  const seen: string[] = [];
  return new Promise((resolve) => {
    socket.addEventListener("open", () => seen.push("open"));
    socket.addEventListener("error", () => seen.push("error"));
    socket.addEventListener("close", (event) => {
      const { code, reason, wasClean } = event as CloseEvent;
      seen.push(`close ${code} ${reason} ${wasClean}`);
      resolve(seen);
    });
  });
}

function opened(socket: DenoWebSocket): Promise<void> {
  return new Promise((resolve) => {
    socket.onopen = () => resolve();
  });
}

/** Deno's own server; `serve` gets each socket. */
async function withServer(
  serve: (socket: WebSocket) => void,
  use: (url: string) => Promise<void>,
): Promise<void> {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    serve(socket);
    return response;
  });
  await use(`ws://127.0.0.1:${server.addr.port}/some/path?x=1`);
  await server.shutdown();
}

/** A server of bare TCP: it answers the request's head with what `answer` makes of it, and goes on as `then` says. */
async function withTcp(
  answer: (head: string, key: string) => string | undefined | Promise<string | undefined>,
  then: (connection: Deno.Conn) => Promise<void>,
  use: (url: string) => Promise<void>,
): Promise<void> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const served = (async () => {
    const connection = await listener.accept();
    try {
      const buffer = new Uint8Array(4096);
      const count = (await connection.read(buffer)) ?? 0;
      const head = new TextDecoder().decode(buffer.subarray(0, count));
      const key = /^Sec-WebSocket-Key: (.*)\r$/m.exec(head)?.[1] ?? "";
      const text = await answer(head, key);
      if (text !== undefined) await connection.write(Uint8Array.from(text, (char) => char.charCodeAt(0)));
      await then(connection);
    } finally {
      connection.close();
    }
  })();
  await use(`ws://127.0.0.1:${(listener.addr as Deno.NetAddr).port}/`);
  await served;
  listener.close();
}

const agreed = async (_head: string, key: string) =>
  `HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nconnection: keep-alive, Upgrade\r\nsec-websocket-accept: ${await acceptOf(key)}\r\n\r\n`;

/** Resolves when the other side has closed its connection. */
async function closedByPeer(connection: Deno.Conn): Promise<void> {
  const buffer = new Uint8Array(4096);
  try {
    while ((await connection.read(buffer)) !== null);
  } catch {
    // A reset is an end as well.
  }
}

Deno.test("websocket > messages of any size go there and back, in order", async () => {
  await withServer(
    (socket) => {
      socket.binaryType = "arraybuffer";
      socket.onmessage = ({ data }) => socket.send(data);
    },
    async (url) => {
      const socket = new DenoWebSocket(url);
      socket.binaryType = "arraybuffer";
      await opened(socket);
      const sent = [0, 1, 125, 126, 65_535, 65_536, 3_000_000].map((size) =>
        Uint8Array.from({ length: size }, (_, i) => (i * 7) % 251),
      );
      const got: Uint8Array[] = [];
      const all = new Promise<void>((resolve) => {
        socket.onmessage = ({ data }) => {
          got.push(new Uint8Array(data as ArrayBuffer));
          if (got.length === sent.length) resolve();
        };
      });
      for (const bytes of sent) socket.send(bytes);
      that(socket.bufferedAmount > 3_000_000, "nothing is waiting to go out");
      await all;
      same(socket.bufferedAmount, 0, "bytes that wait");
      same(
        got.map(({ length }) => length),
        sent.map(({ length }) => length),
        "sizes",
      );
      for (const [i, bytes] of sent.entries())
        that(
          bytes.every((byte, at) => got[i]?.[at] === byte),
          `message ${i}`,
        );
      const end = ended(socket);
      socket.close(3001, "done");
      same(socket.readyState, DenoWebSocket.CLOSING, "state");
      same(await end, ["close 3001 done true"], "its end");
      same(socket.readyState, DenoWebSocket.CLOSED, "state");
    },
  );
});

Deno.test("websocket > a thousand texts sent at once arrive once each, in order", async () => {
  const got: string[] = [];
  await withServer(
    (socket) => {
      socket.onmessage = ({ data }) => {
        got.push(data);
        if (got.length === 1000) socket.close(4000, "enough");
      };
    },
    async (url) => {
      const socket = new DenoWebSocket(url);
      const end = ended(socket);
      await opened(socket);
      for (let i = 0; i < 1000; i += 1) socket.send(`${i}`);
      same(await end, ["open", "close 4000 enough true"], "its end");
    },
  );
  same(
    got,
    Array.from({ length: 1000 }, (_, i) => String(i)),
    "texts",
  );
});

Deno.test("websocket > without arraybuffer chosen, bytes come as a Blob", async () => {
  await withServer(
    (socket) => {
      socket.onopen = () => socket.send(new Uint8Array([1, 2]));
    },
    async (url) => {
      const socket = new DenoWebSocket(url);
      const data = await new Promise<Blob>((resolve) => {
        socket.onmessage = (event) => resolve(event.data);
      });
      same(new Uint8Array(await data.arrayBuffer()), new Uint8Array([1, 2]), "bytes");
      const end = ended(socket);
      socket.close();
      same(await end, ["close 1005  true"], "its end");
    },
  );
});

Deno.test("websocket > a ping is answered, and a message right behind the handshake is not lost", async () => {
  let pong: Uint8Array | undefined;
  await withTcp(
    async (head, key) => `${await agreed(head, key)}\x81\x02hi\x89\x01p`,
    async (connection) => {
      const buffer = new Uint8Array(64);
      pong = buffer.slice(0, (await connection.read(buffer)) ?? 0);
      await connection.write(Uint8Array.of(0x88, 0x02, 0x03, 0xe8));
      await closedByPeer(connection);
    },
    async (url) => {
      const socket = new DenoWebSocket(url);
      const messages: unknown[] = [];
      socket.onmessage = ({ data }) => messages.push(data);
      same(await ended(socket), ["open", "close 1000  true"], "its end");
      same(messages, ["hi"], "messages");
    },
  );
  same([pong?.[0], pong?.[1], pong?.length], [0x8a, 0x81, 7], "the pong");
});

Deno.test("websocket > a server that breaks the protocol is told so and left", async () => {
  let told: Uint8Array | undefined;
  await withTcp(
    async (head, key) => `${await agreed(head, key)}\x83\x00`,
    async (connection) => {
      const buffer = new Uint8Array(64);
      told = buffer.slice(0, (await connection.read(buffer)) ?? 0);
      await closedByPeer(connection);
    },
    async (url) =>
      same(await ended(new DenoWebSocket(url)), ["open", "error", "close 1006  false"], "its end"),
  );
  same(told?.[0], 0x88, "the frame it got");
  same([(told?.[6] ?? 0) ^ (told?.[2] ?? 0), (told?.[7] ?? 0) ^ (told?.[3] ?? 0)], [0x03, 0xea], "its code");
});

Deno.test("websocket > a server that vanishes ends it with 1006", async () => {
  await withTcp(
    agreed,
    async () => {},
    async (url) => {
      const seen = await ended(new DenoWebSocket(url));
      same([seen[0], seen.at(-1)], ["open", "close 1006  false"], "its end");
    },
  );
});

Deno.test("websocket > a server that does not answer a close is cut off after a while", async () => {
  await withTcp(agreed, closedByPeer, async (url) => {
    const socket = new DenoWebSocket(url, { closeWaitMs: 50 });
    await opened(socket);
    const end = ended(socket);
    socket.close();
    same((await end).at(-1), "close 1006  false", "its end");
  });
});

const REFUSALS: readonly (readonly [string, (head: string, key: string) => Promise<string> | string])[] = [
  ["answers 404", () => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"],
  ["speaks no HTTP", () => "+OK hello\r\n\r\n"],
  ["answers another key", async (head) => await agreed(head, "another")],
  [
    "agrees to no upgrade",
    async (head, key) => (await agreed(head, key)).replace("upgrade: WebSocket", "x: y"),
  ],
  [
    "agrees to what was not asked for",
    async (head, key) =>
      (await agreed(head, key)).replace("\r\n\r\n", "\r\nsec-websocket-extensions: x\r\n\r\n"),
  ],
  ["answers without end", () => `HTTP/1.1 101 Switching Protocols\r\nx: ${"y".repeat(20_000)}`],
  ["closes before it answers", () => ""],
];
for (const [what, answer] of REFUSALS) {
  Deno.test(`websocket > a server that ${what} makes an error and a close`, async () => {
    await withTcp(
      answer,
      async (connection) => {
        if (what !== "closes before it answers") await closedByPeer(connection);
      },
      async (url) => same(await ended(new DenoWebSocket(url)), ["error", "close 1006  false"], "its end"),
    );
  });
}

Deno.test("websocket > a port where nobody listens makes an error and a close", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  same(await ended(new DenoWebSocket(`ws://127.0.0.1:${port}/`)), ["error", "close 1006  false"], "its end");
});

Deno.test("websocket > closing it while it opens ends it at once", async () => {
  await withTcp(
    () => undefined,
    closedByPeer,
    async (url) => {
      const socket = new DenoWebSocket(url);
      const end = ended(socket);
      await new Promise((resolve) => setTimeout(resolve, 20));
      socket.close();
      same(await end, ["error", "close 1006  false"], "its end");
    },
  );
  const early = new DenoWebSocket("ws://127.0.0.1:9/");
  const end = ended(early);
  early.close();
  same((await end).at(-1), "close 1006  false", "the end of one that was closed before anything happened");
});

Deno.test("websocket > the request is what a server expects", async () => {
  let seen = "";
  await withTcp(
    (head) => {
      seen = head;
      return "HTTP/1.1 400 Bad Request\r\n\r\n";
    },
    closedByPeer,
    async (url) => {
      await ended(new DenoWebSocket(`${url.replace("ws://", "ws://ada:s%20e@")}p/q?r=1`));
    },
  );
  const lines = seen.split("\r\n");
  same(lines[0], "GET /p/q?r=1 HTTP/1.1", "request line");
  that(
    lines.some((line) => /^Host: 127\.0\.0\.1:\d+$/.test(line)),
    "no host",
  );
  that(lines.includes(`Authorization: Basic ${btoa("ada:s e")}`), "no authorization");
  that(
    lines.some((line) => /^Sec-WebSocket-Key: [A-Za-z0-9+/]{22}==$/.test(line)),
    "no key",
  );
});

Deno.test("websocket > misuse is told at once", () => {
  const thrown = (fn: () => unknown) => {
    try {
      fn();
    } catch (error) {
      return (error as Error).name;
    }
    return "nothing";
  };
  same(
    thrown(() => new DenoWebSocket("http://127.0.0.1/")),
    "SyntaxError",
    "http:",
  );
  same(
    thrown(() => new DenoWebSocket("ws://127.0.0.1/#x")),
    "SyntaxError",
    "a fragment",
  );
  same(
    thrown(() => new DenoWebSocket("nonsense")),
    "SyntaxError",
    "no URL",
  );
  const socket = new DenoWebSocket("ws://127.0.0.1:9/");
  same(
    thrown(() => socket.send("x")),
    "InvalidStateError",
    "sending early",
  );
  same(
    thrown(() => socket.close(1001)),
    "InvalidAccessError",
    "a code that is not ours",
  );
  same(
    thrown(() => socket.close(1000, "x".repeat(124))),
    "SyntaxError",
    "a long reason",
  );
  return ended(socket).then(() => {});
});

Deno.test("websocket > a listener that throws does not end the connection", async () => {
  const reported: string[] = [];
  const onError = (event: ErrorEvent) => {
    event.preventDefault();
    reported.push(event.message);
  };
  globalThis.addEventListener("error", onError);
  await withServer(
    (socket) => {
      socket.onopen = () => {
        socket.send("one");
        socket.send("two");
      };
    },
    async (url) => {
      const socket = new DenoWebSocket(url);
      await new Promise<void>((resolve) => {
        socket.onmessage = ({ data }) => {
          if (data === "one") throw new Error("the listener's fault");
          resolve();
        };
      });
      const end = ended(socket);
      socket.close();
      await end;
    },
  );
  globalThis.removeEventListener("error", onError);
  same(reported.length, 1, "errors reported");
  that(reported[0]?.includes("the listener's fault") === true, `reported ${reported[0]}`);
});
