/**
 * A producer process of a chaos run that enqueues by HTTP, as any program does: each job under its id, in a header.
 *
 * @module
 */
import { readSettings } from "./process.ts";
import { produce } from "./producing.ts";

const TIMEOUT_MS = 1_000;

const settings = readSettings();
let stopping = false;
process.on("SIGTERM", () => {
  stopping = true;
});

async function post(queue: string, id: string, body: unknown): Promise<void> {
  const url = `${settings.broker}/v1/queues/${queue}/jobs`;
  const init = {
    method: "POST",
    headers: { authorization: `Bearer ${process.env.EDDY_HTTP_TOKEN}`, "eddy-id": id },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  };
  const answer = await fetch(url, init)
    .then(
      // One that breaks off is none.
      (response) => response.text().then((text) => ({ status: response.status, text })),
    )
    .catch(() => undefined);
  if (answer === undefined || answer.status === 429 || answer.status >= 500) throw new Error("No answer");
  if (answer.status >= 400) {
    throw new RangeError(`Cannot enqueue: the answer is ${answer.status}; ${answer.text.slice(0, 200)}`);
  }
}

await produce({
  settings,
  async put({ name }, jobs) {
    for (const { id, body } of jobs) await post(name, id, body);
  },
  isStopping: () => stopping,
  // Each takes all that runs in the objects along, three times.
  poisonOneIn: 100,
});
process.exit(0);
