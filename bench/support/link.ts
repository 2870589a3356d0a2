/**
 * A slow link in front of a TCP port, as long as it claims to be.
 *
 * @module
 */
import { createConnection } from "node:net";
import { Child } from "./child.ts";
import { quantile } from "./figures.ts";

export interface Link {
  /** The port to connect to instead. */
  readonly port: number;
  /** How long a byte takes there and back, in milliseconds: as it was measured when the link was set up. */
  readonly roundTripMs: number;
  stop(): Promise<void>;
}

const ECHOES = 60;

/**
 * The scheduler's real-time class, where it may be had: the link is no part of the machine that is measured, and what else runs here must
 * not make it longer.
 */
function realTime(): readonly string[] {
  const chrt = ["chrt", "--fifo", "1"];
  if (Bun.which("chrt") === null) return [];
  return Bun.spawnSync([...chrt, "true"], { stdout: "ignore", stderr: "ignore" }).exitCode === 0 ? chrt : [];
}

/** @param oneWayMs how long each direction takes, in milliseconds. */
export async function startLink(toPort: number, oneWayMs: number): Promise<Link> {
  const child = new Child(
    "link.ts",
    { toPort, delayMs: oneWayMs },
    { command: [...realTime(), process.execPath], limitMs: 3_600_000 },
  );
  try {
    const { port, echoPort } = await child.next<{ port: number; echoPort: number }>();
    // The proxy's own sockets and timers add to each way what no real link would.
    const own = (await echoMs(echoPort)) - 2 * oneWayMs;
    child.tell(oneWayMs - Math.min(own, oneWayMs) / 2);
    await child.next();
    return { port, roundTripMs: await echoMs(echoPort), stop: () => child.end() };
  } catch (error) {
    await child.end();
    throw error;
  }
}

/** The median of some echoes, one after the other. */
async function echoMs(port: number): Promise<number> {
  const socket = createConnection(port, "127.0.0.1");
  socket.setNoDelay(true);
  const times: number[] = [];
  try {
    await new Promise<void>((resolve, reject) => {
      let sentAt = 0;
      const send = () => {
        sentAt = performance.now();
        socket.write("x");
      };
      socket.on("connect", send);
      socket.on("data", () => {
        times.push(performance.now() - sentAt);
        if (times.length > ECHOES) resolve();
        else send();
      });
      socket.on("error", reject);
      socket.on("close", () => reject(new Error("Cannot measure the link: it closed")));
    });
  } finally {
    socket.destroy();
  }
  return quantile(times.slice(1), 0.5);
}
