/**
 * A worker that delivers webhooks: each job's body is posted, byte for byte, to one URL, with a signature that the receiver can check.
 *
 * ```sh
 * EDDY_WEBHOOK_URL=https://example.com/hook EDDY_WEBHOOK_SECRET=… npm run worker -- examples/webhooks.ts
 * ```
 *
 * @module
 */
import {
  type BackoffOptions,
  defineWorker,
  type Job,
  PermanentError,
  queue,
  type WorkerDefinition,
} from "../src/mod.ts";

/** The queue of payloads. The header `event` of a job names its kind of event. */
export const webhooks = queue("webhooks");

export interface WebhookOptions {
  /** Where payloads are posted to. */
  readonly url: string;
  /** The key of the signature, shared with the receiver. */
  readonly secret: string;
  /** Delays before a payload is posted again. Default: 1 s doubling to 10 minutes, with full jitter. */
  readonly backoff?: BackoffOptions;
  /** How often a payload is posted at the most. Default 8. */
  readonly maxAttempts?: number;
}

/** The longest a receiver's `Retry-After` is heeded, in milliseconds. */
const LONGEST_WAIT_MS = 3_600_000;

/**
 * Makes the worker. An answer of 2xx is success. 408, 425, 429, 5xx and a connection that fails are tried again; the receiver's `Retry-After` is heeded. Any other
 * answer, a redirect too, sets the payload aside as a dead letter.
 *
 * @throws {TypeError} when the URL is none or the secret is empty.
 */
export function deliverWebhooks(options: WebhookOptions): WorkerDefinition {
  const url = targetOf(options.url);
  if (options.secret === "") throw new TypeError("Cannot deliver webhooks: the secret is empty; give one");
  const sign = signer(options.secret);
  const deliver = async (job: Job): Promise<void> => {
    const body = job.bytes.slice();
    const response = await job.fetch(url, {
      method: "POST",
      redirect: "manual",
      body,
      headers: {
        "Content-Type": "application/json",
        "X-GitHub-Event": job.headers.event ?? "unknown",
        "X-GitHub-Delivery": job.id,
        "X-Hub-Signature-256": await sign(body),
      },
    });
    await response.body?.cancel();
    if (response.ok) return;
    const reason = `The receiver answered ${response.status}`;
    if (!worthAnotherTry(response.status)) throw new PermanentError(reason);
    const delayMs = retryAfterMs(response.headers.get("retry-after"));
    if (delayMs === undefined) throw new Error(reason);
    job.retry({ delayMs, reason });
  };
  return defineWorker({
    queues: [
      webhooks.handle(deliver, {
        concurrency: 8,
        maxAttempts: options.maxAttempts ?? 8,
        timeoutMs: 20_000,
        ...(options.backoff === undefined ? {} : { backoff: options.backoff }),
      }),
    ],
  });
}

function targetOf(text: string): string {
  if (!URL.canParse(text) || !/^https?:/i.test(text)) {
    throw new TypeError("Cannot deliver webhooks: the URL is none; give an https:// one");
  }
  return text;
}

function worthAnotherTry(status: number): boolean {
  return status >= 500 || status === 408 || status === 425 || status === 429;
}

/** Only seconds are read; a date would need the receiver's clock to agree with this one. */
function retryAfterMs(header: string | null): number | undefined {
  if (header === null || !/^\d{1,9}$/.test(header)) return undefined;
  return Math.min(Number(header) * 1_000, LONGEST_WAIT_MS);
}

/** Makes a function from a body to its signature: `sha256=` and the HMAC in hexadecimal. */
export function signer(secret: string): (body: Uint8Array<ArrayBuffer>) => Promise<string> {
  let key: Promise<CryptoKey> | undefined;
  return async (body) => {
    key ??= crypto.subtle.importKey(
      "raw",
      new TextEncoder().encode(secret),
      { name: "HMAC", hash: "SHA-256" },
      false,
      ["sign"],
    );
    const mac = new Uint8Array(await crypto.subtle.sign("HMAC", await key, body));
    return `sha256=${Array.from(mac, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  };
}

/**
 * The worker as the environment describes it: `EDDY_WEBHOOK_URL` and `EDDY_WEBHOOK_SECRET`.
 *
 * @throws {TypeError} when one of them is not set.
 */
export default function fromEnvironment(env: Readonly<Record<string, string | undefined>>): WorkerDefinition {
  const setting = (name: string): string => {
    const value = env[name];
    if (value === undefined || value === "")
      throw new TypeError(`Cannot deliver webhooks: ${name} is not set; set it`);
    return value;
  };
  return deliverWebhooks({ url: setting("EDDY_WEBHOOK_URL"), secret: setting("EDDY_WEBHOOK_SECRET") });
}
