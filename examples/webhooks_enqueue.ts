/**
 * Puts every one of GitHub's example payloads into the queue of `examples/webhooks.ts`, exactly as it stands.
 *
 * ```sh
 * npx bun examples/webhooks_enqueue.ts --broker sqlite:eddy.sqlite
 * ```
 *
 * @module
 */
import { parseArgs } from "node:util";
import { bunPlatform, chooseBroker, openBroker } from "../runtimes/bun/mod.ts";
import { Producer } from "../src/mod.ts";
import { githubPayloads } from "./github_payloads.ts";
import { webhooks } from "./webhooks.ts";

const { values } = parseArgs({ options: { broker: { type: "string" } } });
const platform = bunPlatform();
const broker = await openBroker(chooseBroker(values.broker, process.env), platform);
try {
  await broker
    .queue(webhooks.name, {
      leaseMs: 30_000,
      requestTimeoutMs: 5_000,
      dedupeWindowMs: webhooks.dedupeWindowMs,
    })
    .open();
  const producer = new Producer({ broker, platform });
  const enqueued = await producer.enqueueRaw(
    webhooks,
    githubPayloads().map(({ event, text }) => ({ body: text, headers: { event } })),
  );
  console.log(`${webhooks.name}: ${enqueued.length} payloads accepted`);
} finally {
  await broker.close();
}
