/**
 * The Durable Object as an engine of a chaos run: workerd, killed and made to stand still, with producers by HTTP. Its objects run the handlers, whose notes come by HTTP to an
 * account outside of workerd.
 *
 * @module
 */
import { join } from "node:path";
import { freePort } from "../support/kept_server.ts";
import { Workerd } from "../support/workerd.ts";
import { freezeWorkerd, killWorkerd } from "../support/workerd_process.ts";
import type { ChaosEngine, EngineOptions } from "./engines.ts";
import type { Eye } from "./eye.ts";
import { HttpLinks } from "./http_links.ts";
import type { Note, Word } from "./notes.ts";
import { poison, work } from "./settings.ts";
import { FROZEN, KILLED } from "./troubles.ts";
import type { DeadLetter } from "./verdict.ts";

const TOKEN = "test-token";
const HEADERS = { authorization: `Bearer ${TOKEN}` };

/** Starts workerd, and the account. */
export async function startObject({ directory, seed, troubles }: EngineOptions): Promise<ChaosEngine> {
  const notes: Note[] = [];
  /** How often workerd was started: its name in the account is made of it. */
  let starts = 1;
  let restarting: Promise<void> | undefined;
  const name = () => `workerd.${starts}`;
  const account = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const [, word = "", queue, id = "", attempt] = new URL(request.url).pathname.split("/");
      notes.push({ word: word as Word, id, atMs: Date.now(), attempt: Number(attempt), by: name() });
      if (queue === poison.name && word === "start") void killBy(starts);
      return new Response();
    },
  });
  const port = await freePort();
  const workerd = await Workerd.start({
    entry: join(import.meta.dir, "object_victim.ts"),
    bindings: { EDDY_TOKEN: TOKEN, EDDY_ACCOUNT: `http://127.0.0.1:${account.port}` },
    objects: { EDDY_QUEUE: "EddyQueue" },
    folder: directory,
    port,
  });
  const links = new HttpLinks(seed);

  async function killAndStart(downMs: number): Promise<void> {
    // What it said just before may be read after its end.
    const [up, gone] = [troubles.begin(KILLED, "server"), troubles.begin(KILLED, name())];
    await killWorkerd();
    await Bun.sleep(downMs);
    gone();
    starts += 1;
    await workerd.restart();
    up();
  }

  function restart(downMs: number): Promise<void> {
    restarting ??= killAndStart(downMs).finally(() => {
      restarting = undefined;
    });
    return restarting;
  }

  /** The poison that this workerd runs kills it, unless something else has. */
  async function killBy(start: number): Promise<void> {
    while (restarting !== undefined) await restarting;
    if (start === starts) await restart(0);
  }

  return {
    keepsAcks: true,
    forgetsMs: 0,
    movesByCopy: false,
    sharesLock: false,
    producer: "http_producer_main.ts",
    notes,
    link: async (place) => ({
      broker: await links.add(place, `http://127.0.0.1:${port}`),
      env: { EDDY_HTTP_TOKEN: TOKEN },
    }),
    eye: async () => objectEye(workerd),
    restart,
    async freeze(forMs) {
      const thawed = [troubles.begin(FROZEN, name()), troubles.begin("frozen", "server")];
      await freezeWorkerd(forMs);
      for (const one of thawed) one();
    },
    calm: () => links.calm(),
    faults: () => links.faults(),
    async stop() {
      await links.stop();
      while (restarting !== undefined) await restarting;
      await workerd.stop();
      await account.stop(true);
    },
  };
}

function objectEye(workerd: Workerd): Eye {
  const queues = async () =>
    await workerd.json<{
      queues: { name: string; sizes: { ready: number; delayed: number; held: number; dead: number } }[];
    }>("/v1/queues", { headers: HEADERS });
  const dead = async (queue: string): Promise<readonly DeadLetter[]> =>
    (
      await workerd.json<{ jobs: DeadLetter[] }>(`/v1/queues/${queue}/dead?limit=1000`, {
        headers: HEADERS,
      })
    ).jobs;
  return {
    async left() {
      let [open, held] = [0, 0];
      for (const { sizes } of (await queues()).queues) {
        open += sizes.ready + sizes.delayed;
        held += sizes.held;
      }
      return { open, held };
    },
    tell: async () => [JSON.stringify(await queues())],
    deadLetters: async () => ({ work: await dead(work.name), poison: await dead(poison.name) }),
    close: async () => {},
  };
}
