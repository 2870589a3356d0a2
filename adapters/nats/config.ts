/**
 * What streams and consumers must be like, and what is wrong with one that is there. Pure.
 *
 * An objection is the middle of a sentence: "the stream X <is so>; <do this>".
 *
 * @module
 */
import { FIRST_RENEWAL_SHARE, leaseMarginMs } from "../../src/lease.ts";
import type { ConsumerConfig, StreamConfig } from "./api.ts";
import type { QueueNames } from "./names.ts";

const NS_PER_MS = 1_000_000;

/** How long the server remembers the ids of dead letters, in milliseconds, so that one sent twice is one. */
const DEAD_WINDOW_MS = 600_000;

interface Wishes {
  readonly storage: "file" | "memory";
  readonly replicas: number;
}

const UNLIMITED = {
  discard: "new",
  max_msgs: -1,
  max_bytes: -1,
  max_age: 0,
  max_msg_size: -1,
  max_msgs_per_subject: -1,
  max_consumers: -1,
} as const;

/** What a queue's stream takes, and no more: of a publisher's slip, a level that there is not, the server says that nobody takes it. */
function jobsSubjects({ subject }: QueueNames): string[] {
  return ["", ".high", ".low", ".returned.*", ".later.*.*.*", ".state.*"].map((tail) => subject + tail);
}

/** The stream that holds a queue's jobs: a work queue, so what is acked is gone. */
export function jobsStream(names: QueueNames, dedupeWindowMs: number, wishes: Wishes): StreamConfig {
  return {
    name: names.jobs,
    subjects: jobsSubjects(names),
    retention: "workqueue",
    storage: wishes.storage,
    num_replicas: wishes.replicas,
    duplicate_window: dedupeWindowMs * NS_PER_MS,
    allow_rollup_hdrs: true,
    republish: { src: `${names.subject}.>`, dest: `${names.news}.>`, headers_only: true },
    ...UNLIMITED,
  };
}

export function deadStream(names: QueueNames, wishes: Wishes): StreamConfig {
  return {
    name: names.dead,
    subjects: [names.deadSubject],
    retention: "limits",
    storage: wishes.storage,
    num_replicas: wishes.replicas,
    duplicate_window: DEAD_WINDOW_MS * NS_PER_MS,
    ...UNLIMITED,
  };
}

/** The stream in which the server's own notes of used-up deliveries are kept until they were dealt with. */
export function exhaustedStream(
  names: QueueNames,
  source: { stream: string; consumer: string },
  wishes: Wishes,
): StreamConfig {
  return {
    name: names.exhausted,
    subjects: [`$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${source.stream}.${source.consumer}`],
    retention: "limits",
    storage: wishes.storage,
    num_replicas: wishes.replicas,
    ...UNLIMITED,
  };
}

/** A consumer of one of the queue's own subjects. Redelivery has no end at the server: the worker's `maxAttempts` is the limit. */
export function laneConsumer(name: string, subject: string, leaseMs: number): ConsumerConfig {
  return {
    durable_name: name,
    filter_subject: subject,
    deliver_policy: "all",
    replay_policy: "instant",
    ack_policy: "explicit",
    ack_wait: leaseMs * NS_PER_MS,
    max_deliver: -1,
    max_ack_pending: -1,
    // One waiting pull an idle worker.
    max_waiting: 8192,
  };
}

/** What keeps a stream from holding jobs, or dead letters, safely; `undefined` when nothing does. */
export function streamObjection(config: StreamConfig, memoryAllowed: boolean): string | undefined {
  const limits = [
    ["max_msgs", config.max_msgs],
    ["max_bytes", config.max_bytes],
    ["max_msgs_per_subject", config.max_msgs_per_subject],
  ] as const;
  const limited = limits.filter(([, limit]) => limit !== undefined && limit > 0).map(([name]) => name);
  if (limited.length > 0 && config.discard !== "new") {
    return `has ${limited.join(" and ")} with discard "old", so a full one drops its oldest jobs; set discard to "new" or take the limit away`;
  }
  if (limited.includes("max_msgs_per_subject") && config.discard_new_per_subject !== true) {
    return 'has max_msgs_per_subject, so it drops jobs of a subject that has many; take the limit away or set discard "new" and discard_new_per_subject';
  }
  if ((config.max_age ?? 0) > 0) {
    return "has a max_age, so jobs that wait too long are dropped; set max_age to 0";
  }
  if (config.storage === "memory" && !memoryAllowed) {
    return 'is kept in memory, so a restart of the server loses all jobs; set its storage to "file", or allow it with the option storage: "memory"';
  }
  if (config.no_ack === true) {
    return "has no_ack, so nobody learns whether a job was taken in; set no_ack to false";
  }
  if (config.sealed === true) return "is sealed, so no job can be added or removed; make a new one";
  return undefined;
}

/** What keeps a stream from being the queue's own. */
export function jobsObjection(
  config: StreamConfig,
  names: QueueNames,
  memoryAllowed: boolean,
): string | undefined {
  const general = streamObjection(config, memoryAllowed);
  if (general !== undefined) return general;
  if (config.retention !== "workqueue") {
    return `has retention "${config.retention}", so finished jobs stay or unseen ones go; make it anew with retention "workqueue"`;
  }
  const subjects = new Set(config.subjects ?? []);
  // One that takes whatever is below the queue's subject takes these, too.
  const isWide = subjects.has(`${names.subject}.>`);
  for (const subject of isWide ? [names.subject] : jobsSubjects(names)) {
    if (!subjects.has(subject)) return `lacks the subject ${subject}; add it`;
  }
  if (config.allow_rollup_hdrs !== true) {
    return "does not allow rollups, by which the queue is paused; set allow_rollup_hdrs to true";
  }
  const { republish } = config;
  if (republish?.src !== `${names.subject}.>` || republish.dest !== `${names.news}.>`) {
    return `does not republish ${names.subject}.> to ${names.news}.>, by which idle workers learn of urgent jobs; set republish so, with headers_only`;
  }
  return deletions(config);
}

export function deadObjection(
  config: StreamConfig,
  names: QueueNames,
  memoryAllowed: boolean,
): string | undefined {
  const general = streamObjection(config, memoryAllowed);
  if (general !== undefined) return general;
  if (config.retention !== "limits") {
    return `has retention "${config.retention}", so dead letters that nobody consumes go; make it anew with retention "limits"`;
  }
  if (!(config.subjects ?? []).includes(names.deadSubject))
    return `lacks the subject ${names.deadSubject}; add it`;
  return deletions(config);
}

function deletions(config: StreamConfig): string | undefined {
  if (config.deny_delete === true || config.deny_purge === true) {
    return "denies deletes or purges, without which jobs cannot be moved or cleared; make it anew with deny_delete and deny_purge false";
  }
  return undefined;
}

/**
 * What keeps a consumer from handing out jobs safely. `max_ack_pending` and its like are limits, no objection: the loop asks for no more. Nor is an ack_wait
 * above the lease asked for: whoever asked has made sure that renewals land within that.
 */
export function consumerObjection(
  config: ConsumerConfig,
  settings: { readonly leaseMs: number; readonly requestTimeoutMs: number },
  leastMaxDeliver: number,
): string | undefined {
  const { requestTimeoutMs } = settings;
  if (config.deliver_subject !== undefined && config.deliver_subject !== "") {
    return "pushes its messages, so a worker could not say how many it has room for; make it anew without deliver_subject";
  }
  if (config.ack_policy !== "explicit") {
    return `has ack_policy "${config.ack_policy}", so a job counts as done before its own handler is; make it anew with ack_policy "explicit"`;
  }
  if (config.headers_only === true) {
    return "hands out headers only, so jobs would come without their bodies; set headers_only to false";
  }
  if ((config.backoff ?? []).length > 0) {
    return "has a backoff, which takes the place of ack_wait, so leases would differ from hand-out to hand-out; take backoff away";
  }
  const leaseMs = ackWaitMs(config);
  const needed = leaseMs * FIRST_RENEWAL_SHARE + 2 * requestTimeoutMs + leaseMarginMs(leaseMs);
  if (leaseMs < settings.leaseMs && needed >= leaseMs) {
    return `has an ack_wait of ${leaseMs} ms, before which a renewal that fails once could not land (requestTimeoutMs is ${requestTimeoutMs}); raise ack_wait or lower requestTimeoutMs`;
  }
  const maxDeliver = config.max_deliver ?? -1;
  if (maxDeliver > 0 && maxDeliver < leastMaxDeliver) {
    return `has a max_deliver of ${maxDeliver}, at which the server parks jobs that still have attempts left; set it to -1 or at least ${leastMaxDeliver} (the option leastMaxDeliver, which must be above maxAttempts)`;
  }
  return undefined;
}

/** How long the server waits for an ack, in milliseconds. */
export function ackWaitMs(config: ConsumerConfig): number {
  return Math.round((config.ack_wait ?? 30_000 * NS_PER_MS) / NS_PER_MS);
}

/** What a consumer sets bounds to. */
export interface ConsumerLimits {
  /** How many deliveries may be open at a time. */
  readonly maxInFlight: number;
  /** How many one pull may ask for. */
  readonly maxBatch: number;
  /** How long one pull may wait, in milliseconds. */
  readonly maxWaitMs: number;
}

export const NO_LIMITS: ConsumerLimits = {
  maxInFlight: Number.POSITIVE_INFINITY,
  maxBatch: Number.POSITIVE_INFINITY,
  maxWaitMs: Number.POSITIVE_INFINITY,
};

/** Limits that keep within those of a consumer, too. */
export function within(limits: ConsumerLimits, config: ConsumerConfig): ConsumerLimits {
  const bound = (limit: number) => (limit > 0 ? limit : Number.POSITIVE_INFINITY);
  return {
    maxInFlight: Math.min(limits.maxInFlight, bound(config.max_ack_pending ?? 1000)),
    maxBatch: Math.min(limits.maxBatch, bound(config.max_batch ?? 0)),
    maxWaitMs: Math.min(limits.maxWaitMs, bound(Math.floor((config.max_expires ?? 0) / NS_PER_MS))),
  };
}
