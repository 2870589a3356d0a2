/**
 * A slow link in a process of its own: what comes in at one end goes out at the other after the delay, each way. Each chunk has a due
 * time of its own, so any number of them can be on the way at once and the link takes nothing from the throughput. A second port leads,
 * over the same link, to an echo.
 *
 * @module
 */
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { hear, params, tell } from "../support/contender.ts";

const options = params<{ toPort: number; delayMs: number }>();
let { delayMs } = options;

interface Chunk {
  readonly due: number;
  readonly deliver: () => void;
}

/** On the way, the soonest first: all have the same delay, so they are due in the order they came. */
const onTheWay: Chunk[] = [];
let armed = false;

/**
 * A timer is late by a tenth of a millisecond or more, which is a percent of the round trip: the last millisecond is waited out
 * turn by turn.
 */
const SPIN_MS = 1;

function arm(): void {
  const next = onTheWay[0];
  if (next === undefined || armed) return;
  armed = true;
  const leftMs = next.due - performance.now();
  if (leftMs > SPIN_MS) setTimeout(deliver, Math.floor(leftMs - SPIN_MS / 2));
  else setImmediate(deliver);
}

function deliver(): void {
  armed = false;
  const now = performance.now();
  while (onTheWay.length > 0 && (onTheWay[0] as Chunk).due <= now) onTheWay.shift()?.deliver();
  arm();
}

function later(fn: () => void): void {
  onTheWay.push({ due: performance.now() + delayMs, deliver: fn });
  arm();
}

function pass(from: Socket, to: Socket): void {
  from.setNoDelay(true);
  from.on("data", (data) => {
    const chunk = Buffer.from(data);
    later(() => to.write(chunk));
  });
  from.on("end", () => later(() => to.end()));
  from.on("error", () => to.destroy());
  from.on("close", () => later(() => to.destroy()));
}

function linkTo(toPort: number): Server {
  return createServer((near) => {
    const far = createConnection(toPort, "127.0.0.1");
    pass(near, far);
    pass(far, near);
  });
}

function listening(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(address !== null && typeof address === "object" ? address.port : 0);
    });
  });
}

const echo = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on("data", (data) => socket.write(data));
  socket.on("error", () => socket.destroy());
});
const port = await listening(linkTo(options.toPort));
tell({ port, echoPort: await listening(linkTo(await listening(echo))) });
// Set right once, by who measured it.
delayMs = await hear<number>();
tell("ready");
