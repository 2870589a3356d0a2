/**
 * One queue over one connection: what all its handles share, and how it learns of news.
 *
 * @module
 */
import { Chain, Chained } from "../../src/chain.ts";
import { BrokerError } from "../../src/errors.ts";
import { Remembered } from "../remembered.ts";
import { Api, readPubAck } from "./api.ts";
import { ServerClock } from "./clock.ts";
import { type ConsumerLimits, NO_LIMITS } from "./config.ts";
import { EncodedHeaders, H } from "./envelope.ts";
import { Fairness } from "./fairness.ts";
import type { Incoming } from "./incoming.ts";
import { type Lane, Lanes } from "./lane.ts";
import { LaterIndex } from "./later.ts";
import { Leases } from "./leases.ts";
import { Line } from "./line.ts";
import type { Link } from "./link.ts";
import { CLOCK_TAIL, namesOf, PAUSED_TAIL, type QueueNames } from "./names.ts";
import type { NatsSource, ResolvedNatsOptions } from "./options.ts";
import type { Session } from "./session.ts";
import { WaitingPulls } from "./waiting_pulls.ts";

class Listener extends Chained {
  readonly hear: () => void;
  constructor(hear: () => void) {
    super();
    this.hear = hear;
  }
}

export class Core {
  readonly name: string;
  readonly names: QueueNames;
  readonly options: ResolvedNatsOptions;
  readonly link: Link;
  readonly source: NatsSource | undefined;
  readonly lanes: Lanes;
  readonly leases = new Leases();
  readonly fairness = new Fairness();
  readonly later = new LaterIndex();
  readonly clock = new ServerClock();
  /** Enqueues of the last while, with what they were answered. */
  readonly requests = new Remembered<readonly boolean[]>(1);
  /** The lease that claims are given, in milliseconds: the longest that a handle which claims has. */
  leaseMs = 0;
  limits: ConsumerLimits = NO_LIMITS;
  maxBodyBytes = 1_000_000;
  /** The largest message that the server and the stream take, with its headers. */
  maxMessageBytes = 1_048_576;
  paused = false;
  #session: Session | undefined;
  #attaching: Promise<void> | undefined;
  #heardOver: Session | undefined;
  /** Claims that wait at the server. */
  readonly waiting = new WaitingPulls();
  readonly #listeners = new Chain<Listener>();
  readonly #lines = new Set<Line>();
  /** Inboxes that wait for their next pull. */
  readonly #idle = new Map<Lane, Line[]>();
  #lineSerial = 0;
  /** Makes the queue's streams where they are missing, if it was opened to do that. Never rejects: whoever asks next is told what is wrong. Set by whoever provides them. */
  makeAnew: () => Promise<void> = () => Promise.resolve();
  /** Given messages that came for a claim that was given up. Set by whoever claims. */
  stray: (lane: Lane, message: Incoming) => void = () => {};

  constructor(name: string, link: Link, options: ResolvedNatsOptions) {
    this.name = name;
    this.options = options;
    this.link = link;
    this.names = namesOf(options.prefix, name);
    this.source = options.sources[name];
    this.lanes = new Lanes(this.names, this.source);
  }

  now(): number {
    return this.options.now();
  }

  /** A handle claims under leases of this length; consumers that wait shorter are lengthened before the next pull. */
  leasesOf(leaseMs: number): void {
    if (leaseMs <= this.leaseMs) return;
    this.leaseMs = leaseMs;
    for (const lane of this.lanes.all) lane.seenOver = undefined;
  }

  /** Told when something changed that a waiting claim should look at. Answers a function that ends it. */
  listen(hear: () => void): () => void {
    const listener = new Listener(hear);
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A line for a lane's next pull. */
  line(session: Session, lane: Lane): Line {
    const idle = this.#idle.get(lane) ?? [];
    for (let line = idle.pop(); line !== undefined; line = idle.pop()) {
      if (line.session === session && line.isIdle) return line;
    }
    this.#lineSerial += 1;
    const name = `${this.name}-${this.#lineSerial}`;
    const line = new Line(session, lane, name, (of, message) => this.stray(of, message));
    this.#lines.add(line);
    return line;
  }

  /** A line's pull has ended; it is kept for the next, unless it was retired. */
  putBack(line: Line): void {
    if (!line.isIdle) return void this.#lines.delete(line);
    const idle = this.#idle.get(line.lane);
    if (idle === undefined) this.#idle.set(line.lane, [line]);
    else idle.push(line);
  }

  /** Whether this connection hears of news, and knows how things stand. */
  isAttached(session: Session): boolean {
    return this.#session === session && this.#attaching === undefined;
  }

  /**
   * Makes sure that this connection hears of news and knows how things stand: which lanes have jobs, which jobs are delayed, whether the queue is
   * paused. Asks only once a connection.
   */
  attach(session: Session, timeoutMs: number): Promise<void> {
    if (this.#session === session) return this.#attaching ?? Promise.resolve();
    this.#session = session;
    const attaching = this.#attach(session, timeoutMs).finally(() => {
      if (this.#attaching === attaching) this.#attaching = undefined;
    });
    this.#attaching = attaching;
    attaching.catch(() => {
      if (this.#session === session) this.#session = undefined;
    });
    return attaching;
  }

  async #attach(session: Session, timeoutMs: number): Promise<void> {
    for (const line of this.#lines) line.broke();
    this.#lines.clear();
    this.#idle.clear();
    this.lanes.forget();
    this.later.clear();
    this.#hear(session);
    await session.flush("claim", timeoutMs);
    const api = new Api(session, "claim", timeoutMs);
    await this.#askPaused(api);
    const subjects = await this.#subjects(api);
    for (const subject of subjects.keys()) this.later.add(subject);
    this.#count(subjects);
  }

  /** Listens to news, once a connection: what follows may fail, and is tried again. */
  #hear(session: Session): void {
    if (this.#heardOver === session) return;
    this.#heardOver = session;
    const { names } = this;
    void session.down.then(() => {
      for (const line of this.#lines) if (line.session === session) line.broke();
      this.#news();
    });
    session.subscribe(`${names.news}.>`, (message) => this.#heard(message.subject));
    session.subscribe(names.subject + PAUSED_TAIL, (message) =>
      this.#setPaused(new TextDecoder().decode(message.data)),
    );
    if (this.source !== undefined) {
      // Then the primary lane is the source's, and nothing else tells of jobs in the normal one.
      session.subscribe(names.subject, () => this.#stir(names.subject));
    }
  }

  /** Asks the server whether the queue is paused: the news of a resume may still be on its way when whoever resumed has its answer. */
  askPaused(session: Session, timeoutMs: number): Promise<void> {
    return this.#askPaused(new Api(session, "claim", timeoutMs));
  }

  async #askPaused(api: Api): Promise<void> {
    const { names } = this;
    const [paused] = await api.get(names.jobs, [{ last_by_subj: names.subject + PAUSED_TAIL }]);
    this.#setPaused(paused === undefined ? "0" : new TextDecoder().decode(paused.data));
  }

  /** Looks again at lanes that may hold jobs of others, if it is time to. */
  async probe(session: Session, timeoutMs: number): Promise<void> {
    if (this.now() < this.lanes.nextProbeAt) return;
    const api = new Api(session, "claim", timeoutMs);
    const { names } = this;
    // Delayed jobs are below one more level, so they are not listed by the first of these.
    const lists = await Promise.all([
      api.subjects(names.jobs, `${names.subject}.*`),
      api.subjects(names.jobs, `${names.subject}.returned.*`),
      this.source === undefined ? undefined : api.subjects(names.jobs, names.subject),
    ]);
    this.#count(new Map(lists.flatMap((list) => [...(list ?? [])])));
  }

  /**
   * Makes sure that the server's clock is known.
   *
   * @throws {BrokerError}
   */
  async readClock(session: Session, verb: string, timeoutMs: number): Promise<void> {
    if (!this.clock.isStale(this.now())) return;
    const subject = this.names.subject + CLOCK_TAIL;
    const api = new Api(session, verb, timeoutMs);
    const sentAt = this.now();
    const headers = new EncodedHeaders([[H.rollup, "sub"]]);
    const reply = await session.ask(verb, timeoutMs, { subject, payload: "", headers });
    // A full stream takes none, and the last one that it took tells an old time.
    readPubAck(verb, reply, this.names.jobs);
    const [stored] = await api.get(this.names.jobs, [{ last_by_subj: subject }]);
    if (stored === undefined) {
      throw new BrokerError(
        "nats",
        verb,
        `Cannot ${verb}: the stream ${this.names.jobs} did not keep a message; is it gone?`,
      );
    }
    // Ours, or somebody's newer one: either was stored between these two moments.
    this.clock.read(sentAt, this.now(), stored.storedAt);
  }

  #subjects(api: Api): Promise<Map<string, number>> {
    const { names } = this;
    if (this.source === undefined) return api.subjects(names.jobs, `${names.subject}.>`);
    return Promise.all([
      api.subjects(names.jobs, `${names.subject}.>`),
      api.subjects(names.jobs, names.subject),
    ]).then((lists) => new Map(lists.flatMap((list) => [...list])));
  }

  #count(subjects: ReadonlyMap<string, number>): void {
    for (const lane of this.lanes.all) {
      if (lane !== this.lanes.primary && lane.kind !== "source")
        lane.counted(subjects.get(lane.subject) ?? 0);
    }
  }

  /** The server tells of a message below the queue's subject. */
  #heard(subject: string): void {
    const own = this.names.subject + subject.slice(this.names.news.length);
    if (own.startsWith(`${this.names.subject}.later.`)) {
      this.later.add(own);
      this.#news();
    } else this.#stir(own);
  }

  #stir(subject: string): void {
    const lane = this.lanes.bySubject(subject);
    if (lane === undefined) return;
    lane.stir(this.now());
    this.#news();
  }

  /** What we stored ourselves need not be told to us. */
  stored(subject: string): void {
    if (this.#session === undefined) return;
    if (subject.startsWith(`${this.names.subject}.later.`)) this.later.add(subject);
    else this.lanes.bySubject(subject)?.stir(this.now());
    this.#news();
  }

  #setPaused(text: string): void {
    this.paused = text === "1";
    this.#news();
  }

  #news(): void {
    this.waiting.news();
    for (const listener of this.#listeners.all()) listener.hear();
  }
}
