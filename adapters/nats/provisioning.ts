/**
 * Makes the streams and consumers of a queue where they are missing, and refuses those that are there and could lose jobs.
 *
 * Consumers of the queue's own lanes are made when the first claim looks at them: so a producer, which knows nothing of leases, does not fix one, and a queue
 * without priorities has a single consumer.
 *
 * @module
 */
import type { QueueSettings } from "../../src/broker.ts";
import { BrokerRefusedError, QueueAbsentError } from "../../src/errors.ts";
import {
  Api,
  ApiError,
  type ConsumerConfig,
  type ConsumerInfo,
  STREAM_NOT_FOUND,
  type StreamConfig,
  SUBJECTS_OVERLAP,
} from "./api.ts";
import {
  ackWaitMs,
  consumerObjection,
  deadObjection,
  deadStream,
  jobsObjection,
  jobsStream,
  laneConsumer,
  NO_LIMITS,
  streamObjection,
  within,
} from "./config.ts";
import type { Core } from "./core.ts";
import type { Exhausted } from "./exhausted.ts";
import type { Lane } from "./lane.ts";
import type { Session } from "./session.ts";

/** What a message's headers may take of the server's max_payload, in bytes; the rest is for the body. */
const HEADER_ROOM = 16_384;

const LEAST_WINDOW_MS = 100;
const MOST_WINDOW_MS = 9_000_000_000_000;

export class Provisioning {
  readonly #core: Core;
  readonly #exhausted: Exhausted;
  /** The shortest ack_wait among our consumers that are there, in milliseconds. */
  #shortestMs = Number.POSITIVE_INFINITY;
  /** The ack_wait of the source's consumer, in milliseconds: it is nobody's to change here. */
  #sourceMs = Number.POSITIVE_INFINITY;
  readonly #ensuring = new Map<Lane, Promise<void>>();
  /** How the queue was opened last by somebody who makes what is missing. */
  #opened: QueueSettings | undefined;
  #making: Promise<void> | undefined;

  constructor(core: Core, exhausted: Exhausted) {
    this.#core = core;
    this.#exhausted = exhausted;
    core.makeAnew = () => this.#makeAnew();
  }

  /**
   * Makes and checks the streams, and checks the consumers that are there. With `create: false` it only checks.
   *
   * @throws {QueueAbsentError} when a stream is not there and is not to be made.
   * @throws {BrokerRefusedError} when jobs could be lost; the message names the setting and the mend.
   */
  async open(settings: QueueSettings): Promise<void> {
    const core = this.#core;
    const { names, options, source } = core;
    checkWindow(core.name, settings.dedupeWindowMs);
    const session = await core.link.session("open", settings.requestTimeoutMs);
    assertVersion(session);
    const api = new Api(session, "open", settings.requestTimeoutMs);
    const memory = options.storage === "memory";
    const makes = settings.create !== false;
    if (makes) this.#opened = settings;
    const [jobs] = await Promise.all([
      this.#stream(api, jobsStream(names, settings.dedupeWindowMs, options), makes, (config) =>
        jobsObjection(config, names, memory),
      ),
      this.#stream(api, deadStream(names, options), makes, (config) => deadObjection(config, names, memory)),
    ]);
    const largest = Math.min(session.maxPayload, sizeLimit(jobs));
    core.maxMessageBytes = largest;
    core.maxBodyBytes = Math.max(1, largest - HEADER_ROOM);
    const consumers = await api.consumers(names.jobs);
    const lanes = core.lanes.all.filter((lane) => lane.kind !== "source");
    let shortestMs = Number.POSITIVE_INFINITY;
    let limits = NO_LIMITS;
    for (const lane of lanes) {
      const info = consumers.find((one) => one.name === lane.consumer);
      if (info === undefined) continue;
      this.#check(lane, info.config, settings);
      shortestMs = Math.min(shortestMs, ackWaitMs(info.config));
      limits = within(limits, info.config);
    }
    this.#shortestMs = shortestMs;
    if (source !== undefined) {
      const config = await this.#checkSource(session, api, settings);
      this.#sourceMs = ackWaitMs(config);
      limits = within(limits, config);
    }
    core.limits = limits;
  }

  #makeAnew(): Promise<void> {
    const settings = this.#opened;
    if (settings === undefined) return Promise.resolve();
    this.#making ??= this.open(settings)
      .catch(() => {})
      .finally(() => {
        this.#making = undefined;
        // Their consumers went with them.
        for (const lane of this.#core.lanes.all) lane.seenOver = undefined;
      });
    return this.#making;
  }

  /**
   * The lease that claims of such a handle are really given, in milliseconds: what it asks for, unless our consumers have a longer one or a source's has a shorter
   * one. Ours are lengthened by the first claim, not by an opening: a producer opens, too.
   */
  leaseMs(settings: QueueSettings): number {
    const own = this.#shortestMs === Number.POSITIVE_INFINITY ? 0 : this.#shortestMs;
    return Math.min(Math.max(settings.leaseMs, own), this.#sourceMs);
  }

  /** Makes sure that a lane's consumer is there, and waits for acks as long as a lease, once a connection. */
  async ensureConsumer(session: Session, lane: Lane, timeoutMs: number): Promise<void> {
    if (lane.seenOver === session) return;
    const known = this.#ensuring.get(lane);
    if (known !== undefined) return known;
    const ensuring = this.#ensure(session, lane, timeoutMs).finally(() => this.#ensuring.delete(lane));
    this.#ensuring.set(lane, ensuring);
    return ensuring;
  }

  async #ensure(session: Session, lane: Lane, timeoutMs: number): Promise<void> {
    const { leaseMs } = this.#core;
    const api = new Api(session, "claim", timeoutMs);
    const info = await api.consumerInfo(lane.stream, lane.consumer);
    if (info === undefined && lane.kind === "source") {
      this.#refuse(
        "claim",
        `the consumer ${lane.consumer} of the stream ${lane.stream} is not there; make it`,
      );
    }
    if (info !== undefined) this.#check(lane, info.config, { leaseMs, requestTimeoutMs: 0 });
    if (info !== undefined && lane.kind === "source" && ackWaitMs(info.config) < leaseMs) {
      this.#refuse(
        "claim",
        `the consumer ${lane.consumer} of the stream ${lane.stream} had its ack_wait lowered to ${ackWaitMs(info.config)} ms while leases last ${leaseMs} ms, so jobs run twice; start the worker again`,
      );
    }
    if (lane.kind !== "source" && (info === undefined || ackWaitMs(info.config) < leaseMs)) {
      // A longer one is safe for whoever relies on a shorter.
      await this.#createConsumer(api, lane, leaseMs, info?.config);
    }
    lane.seenOver = session;
    lane.seenAt = this.#core.now();
  }

  #check(
    lane: Lane,
    config: ConsumerConfig,
    settings: { readonly leaseMs: number; readonly requestTimeoutMs: number },
  ): void {
    const core = this.#core;
    const which = `the consumer ${lane.consumer} of the stream ${lane.stream}`;
    // One of ours that waits too short is lengthened before it is used.
    const leaseMs = lane.kind === "source" ? settings.leaseMs : 0;
    const objection = consumerObjection(config, { ...settings, leaseMs }, core.options.leastMaxDeliver);
    if (objection !== undefined) this.#refuse("open", `${which} ${objection}`);
    if (lane.kind !== "source" && config.filter_subject !== lane.subject) {
      this.#refuse(
        "open",
        `${which} does not have the filter_subject ${lane.subject}; delete it, and it is made anew`,
      );
    }
  }

  /** Makes a consumer, or changes one: the server takes both as the same. */
  async #createConsumer(
    api: Api,
    lane: Lane,
    leaseMs: number,
    before: ConsumerConfig = {},
  ): Promise<ConsumerInfo> {
    const wanted = laneConsumer(lane.consumer, lane.subject, leaseMs);
    const config = before.ack_wait === undefined ? wanted : { ...before, ack_wait: wanted.ack_wait };
    return api.ask<ConsumerInfo>(`CONSUMER.DURABLE.CREATE.${lane.stream}.${lane.consumer}`, {
      stream_name: lane.stream,
      config,
    });
  }

  async #checkSource(session: Session, api: Api, settings: QueueSettings): Promise<ConsumerConfig> {
    const core = this.#core;
    const { stream, consumer } = core.source as { stream: string; consumer: string };
    const found = await this.#find(api, stream);
    if (found === undefined) this.#refuse("open", `the stream ${stream} is not there; make it`);
    const objection = streamObjection(found, core.options.storage === "memory");
    if (objection !== undefined) this.#refuse("open", `the stream ${stream} ${objection}`);
    const info = await api.consumerInfo(stream, consumer);
    if (info === undefined) {
      this.#refuse("open", `the consumer ${consumer} of the stream ${stream} is not there; make it`);
    }
    this.#check(core.lanes.primary, info.config, settings);
    if (settings.create !== false) await this.#exhausted.open(session, info, settings.requestTimeoutMs);
    return info.config;
  }

  /** The stream as it is, made when it was missing. */
  async #stream(
    api: Api,
    wanted: StreamConfig,
    makes: boolean,
    objection: (config: StreamConfig) => string | undefined,
  ): Promise<StreamConfig> {
    const found = await this.#find(api, wanted.name);
    if (found === undefined && !makes) this.#absent(wanted.name);
    let config = found ?? (await this.#create(api, wanted));
    const why = objection(config);
    if (why !== undefined) this.#refuse("open", `the stream ${wanted.name} ${why}`);
    // A longer window keeps every promise that a shorter one does.
    if (makes && (config.duplicate_window ?? 0) < (wanted.duplicate_window ?? 0)) {
      try {
        const changed = { ...config, duplicate_window: wanted.duplicate_window };
        config = (await api.ask<{ config: StreamConfig }>(`STREAM.UPDATE.${wanted.name}`, changed)).config;
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        this.#refuse(
          "open",
          `the stream ${wanted.name} has a duplicate_window shorter than dedupeWindowMs, and the server would not lengthen it (${error.description}); set it to ${(wanted.duplicate_window ?? 0) / 1e6} ms`,
        );
      }
    }
    return config;
  }

  async #find(api: Api, stream: string): Promise<StreamConfig | undefined> {
    try {
      return (await api.streamInfo(stream)).config;
    } catch (error) {
      if (error instanceof ApiError && error.errCode === STREAM_NOT_FOUND) return undefined;
      throw error;
    }
  }

  async #create(api: Api, wanted: StreamConfig): Promise<StreamConfig> {
    try {
      return (await api.ask<{ config: StreamConfig }>(`STREAM.CREATE.${wanted.name}`, wanted)).config;
    } catch (error) {
      if (error instanceof BrokerRefusedError) {
        // Who only enqueues or works need not be let to make one.
        this.#refuse(
          "open",
          `it is not there, for the server has no stream ${wanted.name}: open it once as a user who may make it. ${error.message}`,
        );
      }
      if (!(error instanceof ApiError)) throw error;
      // Somebody else made it in this very moment, perhaps with another window. The server has more than one way to say so.
      const found = await this.#find(api, wanted.name);
      if (found !== undefined) return found;
      if (error.errCode === SUBJECTS_OVERLAP) await this.#refuseOverlap(api, wanted);
      throw error;
    }
  }

  /** The server gives each subject to one stream. Subjects begin with the prefix in lower case, so another prefix of the same letters has the same ones. */
  async #refuseOverlap(api: Api, wanted: StreamConfig): Promise<void> {
    const names = new Set<string>();
    for (const subject of wanted.subjects ?? []) {
      const answer = await api.ask<{ streams?: string[] | null }>("STREAM.NAMES", { subject });
      for (const name of answer.streams ?? []) names.add(name);
    }
    if (names.size === 0) return;
    const others = [...names].map((name) => name.slice(0, 200)).join(", ");
    this.#refuse(
      "open",
      `its subjects (${(wanted.subjects ?? []).join(", ")}) are those of another stream already (${others}); use another prefix, in more than the case of its letters, or take them from that stream`,
    );
  }

  #absent(stream: string): never {
    throw new QueueAbsentError(
      "nats",
      "open",
      `Cannot open queue ${this.#core.name}: it is not there, for the server has no stream ${stream}; name another, or enqueue a job first`,
    );
  }

  #refuse(verb: string, why: string): never {
    throw new BrokerRefusedError("nats", verb, `Cannot ${verb} queue ${this.#core.name}: ${why}`);
  }
}

/** What JetStream takes for a stream's duplicate_window: it counts in nanoseconds, with 63 bits. */
function checkWindow(queue: string, windowMs: number): void {
  if (windowMs >= LEAST_WINDOW_MS && windowMs <= MOST_WINDOW_MS) return;
  throw new RangeError(
    `Cannot open queue ${queue}: dedupeWindowMs is ${windowMs}; JetStream keeps ids for ${LEAST_WINDOW_MS} to ${MOST_WINDOW_MS} ms`,
  );
}

function sizeLimit(config: StreamConfig): number {
  const most = config.max_msg_size ?? -1;
  return most > 0 ? most : Number.POSITIVE_INFINITY;
}

/** Headers only are republished since 2.9, and its `no_wait` pulls wait for a first message. */
function assertVersion(session: Session): void {
  const [major = 0, minor = 0] = session.serverVersion.split(".").map(Number);
  if (major > 2 || (major === 2 && minor >= 9)) return;
  throw new BrokerRefusedError(
    "nats",
    "open",
    `Cannot open: ${session.origin} runs nats-server ${session.serverVersion.slice(0, 20)}; use 2.9 or later`,
  );
}
