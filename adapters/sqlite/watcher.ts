import type { Watch } from "../../src/broker.ts";
import type { BrokerError } from "../../src/errors.ts";
import type { Connection } from "./connection.ts";

/** How often other connections' commits are looked for: a few microseconds each time, and only while somebody watches. */
const LOOK_EVERY_MS = 5;

interface Watcher {
  readonly queue: number;
  readonly onWake: () => void;
  readonly onEnd: (error: Error) => void;
}

/**
 * Tells watchers of new work: of this connection's at once, of other connections' (other processes', too) within a few
 * milliseconds. A commit elsewhere is news only when the queue has something to claim, so workers at work do not wake
 * idle ones.
 */
export class Watchers {
  readonly #connection: Connection;
  readonly #watchers = new Set<Watcher>();
  readonly #news = new Set<number>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #seenCommits: number | undefined;
  /** Each watched queue's first delayed job, as of the last look: who watches has been told of it, or learns it from a claim. */
  readonly #firstDelayed = new Map<number, string>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  add(queue: number, onWake: () => void, onEnd: (error: Error) => void): Promise<Watch> {
    return this.#connection.reading(() => this.#add({ queue, onWake, onEnd }));
  }

  #add(watcher: Watcher): Watch {
    const { queue } = watcher;
    if (this.#watchers.size === 0) this.#seenCommits = this.#connection.otherCommits();
    // Others who watch this queue have not been told of what came since the last look.
    if (!this.#watchesQueue(queue)) this.#hasWork(queue);
    this.#watchers.add(watcher);
    this.#start();
    return {
      close: async () => {
        this.#watchers.delete(watcher);
        if (!this.#watchesQueue(queue)) this.#firstDelayed.delete(queue);
        if (this.#watchers.size === 0) this.#stop();
      },
    };
  }

  /** Jobs of a queue became ready through this connection. */
  announce(queue: number): void {
    if (this.#watchers.size === 0) return;
    if (this.#news.size === 0) queueMicrotask(() => this.#tell());
    this.#news.add(queue);
  }

  /** Ends all, without a word to them. */
  close(): void {
    this.#watchers.clear();
    this.#firstDelayed.clear();
    this.#stop();
  }

  #tell(): void {
    const queues = [...this.#news];
    this.#news.clear();
    for (const watcher of [...this.#watchers]) {
      if (queues.includes(watcher.queue) && this.#watchers.has(watcher)) watcher.onWake();
    }
  }

  /** Who was told while a transaction waits, and claimed, would have to wait behind it: it is soon enough when that is through. */
  #lookAfter(waiting: Promise<void>): void {
    this.#stop();
    void waiting.then(() => this.#start());
  }

  #look(): void {
    const { waiting } = this.#connection;
    if (waiting !== undefined) return this.#lookAfter(waiting);
    try {
      const commits = this.#connection.otherCommits();
      if (commits === this.#seenCommits) return;
      for (const queue of new Set([...this.#watchers].map((watcher) => watcher.queue))) {
        if (this.#hasWork(queue)) this.announce(queue);
      }
      this.#seenCommits = commits;
    } catch (error) {
      // What cannot be read now is looked at the next time.
      if (!this.#connection.isBusy(error)) this.#fail(error as BrokerError);
    }
  }

  #watchesQueue(queue: number): boolean {
    return [...this.#watchers].some((watcher) => watcher.queue === queue);
  }

  /** Whether jobs are ready, or another delayed one is first: whoever slept towards the old one must learn the new due time. */
  #hasWork(queue: number): boolean {
    return this.#connection.read("watch", (sql) => {
      const isPaused = sql.queueState.get(queue)?.paused === 1;
      const row = isPaused ? undefined : sql.nextDue.get(queue);
      const first = row && `${row.due_at} ${row.seq}`;
      const known = this.#firstDelayed.get(queue);
      if (first === undefined) this.#firstDelayed.delete(queue);
      else this.#firstDelayed.set(queue, first);
      if (isPaused) return false;
      return (first !== undefined && first !== known) || sql.anyReady.get(queue) !== undefined;
    });
  }

  #fail(error: BrokerError): void {
    const watchers = [...this.#watchers];
    this.close();
    for (const watcher of watchers) watcher.onEnd(error);
  }

  #start(): void {
    if (this.#watchers.size === 0 || this.#seenCommits === undefined || this.#timer !== undefined) return;
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
    unref(this.#timer);
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** A look must not keep a process alive that has nothing else to do. Where timers are numbers there is nothing to do. */
function unref(timer: unknown): void {
  (timer as { unref?: () => void }).unref?.();
}
