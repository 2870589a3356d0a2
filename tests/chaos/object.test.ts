/** SIGKILL of workerd in the middle of the work of Durable Objects: nothing accepted is lost, and a job that has workerd killed each time ends as a dead letter, alone. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { Dice } from "../simulation/dice.ts";
import { Workerd } from "../support/workerd.ts";
import { killWorkerd } from "../support/workerd_process.ts";

const TOKEN = "test-token";
const HEADERS = { authorization: `Bearer ${TOKEN}` };
const KILLS = 6;
const JOBS_A_KILL = 60;

/** What the handlers said, in order. */
const notes: { word: string; queue: string; id: string }[] = [];
let onNote: () => void = () => {};
const account = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request) {
    const [, word = "", queue = "", id = ""] = new URL(request.url).pathname.split("/");
    notes.push({ word, queue, id });
    onNote();
    return new Response();
  },
});

let workerd: Workerd;
beforeAll(async () => {
  workerd = await Workerd.start({
    entry: join(import.meta.dir, "object_victim.ts"),
    bindings: { EDDY_TOKEN: TOKEN, EDDY_ACCOUNT: `http://127.0.0.1:${account.port}` },
    objects: { EDDY_QUEUE: "EddyQueue" },
  });
}, 60_000);
afterAll(async () => {
  await workerd?.stop();
  await account.stop(true);
});

/** Resolves when so many notes of a word were taken since `from`. */
async function noted(word: string, queue: string, count: number, from: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const late = setTimeout(
    () => reject(new Error(`Waited in vain for ${count} notes "${word}" of ${queue}`)),
    30_000,
  );
  onNote = () => {
    const seen = notes.slice(from).filter((note) => note.word === word && note.queue === queue).length;
    if (seen >= count) resolve();
  };
  onNote();
  await promise.finally(() => {
    clearTimeout(late);
    onNote = () => {};
  });
}

/** Enqueues under an id; answers whether that was answered. */
async function enqueue(queue: string, id: string): Promise<boolean> {
  const init = {
    method: "POST",
    headers: { ...HEADERS, "eddy-id": id },
    body: JSON.stringify({ pad: "" }),
  };
  return await workerd.json(`/v1/queues/${queue}/jobs`, init).then(
    () => true,
    () => false,
  );
}

interface Sizes {
  readonly ready: number;
  readonly delayed: number;
  readonly held: number;
}

async function untilEmpty(): Promise<void> {
  const deadline = performance.now() + 30_000;
  for (;;) {
    const { queues } = await workerd.json<{ queues: { sizes: Sizes }[] }>("/v1/queues", { headers: HEADERS });
    if (queues.every(({ sizes }) => sizes.ready + sizes.delayed + sizes.held === 0)) return;
    if (performance.now() > deadline) throw new Error(`Not emptied: ${JSON.stringify(queues)}`);
    await Bun.sleep(20);
  }
}

async function dead(queue: string): Promise<{ id: string; error: string }[]> {
  const { jobs } = await workerd.json<{ jobs: { id: string; error: string }[] }>(`/v1/queues/${queue}/dead`, {
    headers: HEADERS,
  });
  return jobs;
}

test("kills at any moment lose nothing, and the poison is the only dead letter", async () => {
  const dice = new Dice(26, "object");
  const accepted = new Set<string>();
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const from = notes.length;
    const middle = noted("start", "chaos", dice.whole(5, JOBS_A_KILL - 10), from).then(killWorkerd);
    let unanswered: string[] = [];
    await Promise.all([
      middle,
      ...Array.from({ length: JOBS_A_KILL }, async (_, n) => {
        const id = `job-${kill}-${n}`;
        if (await enqueue("chaos", id)) accepted.add(id);
        else unanswered.push(id);
      }),
    ]);
    await workerd.restart();
    // What was not answered is sent again under its id until it is.
    while (unanswered.length > 0) {
      const again = unanswered;
      unanswered = [];
      for (const id of again) {
        if (await enqueue("chaos", id)) accepted.add(id);
        else unanswered.push(id);
      }
    }
  }
  expect(await enqueue("poison", "bad")).toBe(true);
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    await noted("start", "poison", attempt, 0);
    await killWorkerd();
    // The object goes on by itself: nothing asks it for anything.
    await workerd.restart();
  }
  await untilEmpty();
  const ended = new Set(notes.filter(({ word }) => word === "end").map(({ id }) => id));
  const starts = notes.filter(({ word, queue }) => word === "start" && queue === "chaos");
  const repeats = starts.length - new Set(starts.map(({ id }) => id)).size;
  console.log(
    `object: ${accepted.size} jobs, ${KILLS + 3} kills, ${accepted.size - ended.size} lost, ${repeats} repeats`,
  );
  expect(accepted.size).toBe(KILLS * JOBS_A_KILL);
  expect([...accepted].filter((id) => !ended.has(id))).toEqual([]);
  expect(await dead("chaos")).toEqual([]);
  const letters = await dead("poison");
  expect(letters.map(({ id }) => id)).toEqual(["bad"]);
  expect(letters[0]?.error).toContain("vanished while it held attempt 3 of 3");
  expect(notes.filter(({ word, id }) => word === "start" && id === "bad")).toHaveLength(3);
}, 120_000);
