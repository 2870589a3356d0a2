/**
 * What is remembered of leases that are over, for a while. Pure.
 *
 * A worker's lease ids count: the same text, a dot, and the next number. Of such a lease that ended as most do one bit is kept, and a number above all that came before is known to be
 * new without a look. Short jobs claimed one by one end ten thousand leases a second: an entry of a map for each is more to make, and for the garbage collector to carry along, than all else
 * that is kept of a job.
 *
 * @module
 */
import { Remembered } from "./remembered.ts";

/** How many leases' bits are kept, and forgotten, together. */
const BLOCK = 1024;
/** What is over is looked through this many times while one entry is kept. */
const SWEEPS = 4;
/** The longest number that is read: what has more digits might not be exact. */
const MAX_DIGITS = 9;
const RADIX = 36;

interface Block {
  readonly bits: Uint32Array;
  touchedAt: number;
}

/** The leases of one worker's loop. */
class Series {
  /** What its ids begin with, the dot included. */
  readonly prefix: string;
  readonly blocks = new Map<number, Block>();
  /** No lease of a number above it was seen. */
  newest = -1;
  constructor(prefix: string) {
    this.prefix = prefix;
  }
}

export class RememberedLeases<V> {
  readonly #keepMs: number;
  readonly #isHeld: (prefix: string) => boolean;
  readonly #common: V;
  /** Leases that ended otherwise, and those whose ids do not count. */
  readonly #others: Remembered<V>;
  readonly #series = new Map<string, Series>();
  /** The one asked about last: mostly it is again. */
  #last: Series | undefined;
  #sweptAt = Number.NEGATIVE_INFINITY;

  /**
   * @param keepMs how long an end is remembered at least, in milliseconds.
   * @param common what is known of most; only this very value is taken for it.
   * @param isHeld whether a lease is held whose id begins so; needed by {@linkcode RememberedLeases.saw} alone.
   */
  constructor(keepMs: number, common: V, isHeld: (prefix: string) => boolean = () => false) {
    this.#keepMs = keepMs;
    this.#common = common;
    this.#isHeld = isHeld;
    this.#others = new Remembered(keepMs);
  }

  /**
   * There is a lease of this id. Answers whether it is plain that none was seen before. To be told both when its claim begins and when it is held: a series of which nothing is
   * held is forgotten when nothing of it has ended for a while, claims under way or not.
   */
  saw(id: string): boolean {
    const series = this.#seriesOf(id) ?? this.#newSeries(id);
    if (series === undefined) return false;
    const number = numberOf(id, series.prefix.length);
    if (!(number > series.newest)) return false;
    series.newest = number;
    return true;
  }

  /** What is known of a lease's end; `undefined` where nothing is. */
  get(id: string, now: number): V | undefined {
    const series = this.#seriesOf(id);
    if (series !== undefined) {
      const number = numberOf(id, series.prefix.length);
      if (number > series.newest) return undefined;
      const bits = series.blocks.get(Math.floor(number / BLOCK))?.bits;
      if (bits !== undefined && isSet(bits, number % BLOCK)) return this.#common;
    }
    return this.#others.get(id, now);
  }

  /** A lease is over, and this is known of it. What was said of it before no longer counts. */
  set(id: string, value: V, now: number): void {
    this.#sweep(now);
    const series = this.#seriesOf(id) ?? this.#newSeries(id);
    const number = series === undefined ? Number.NaN : numberOf(id, series.prefix.length);
    if (series === undefined || Number.isNaN(number)) return this.#others.set(id, value, now);
    if (number > series.newest) series.newest = number;
    const at = Math.floor(number / BLOCK);
    let block = series.blocks.get(at);
    if (block === undefined) {
      block = { bits: new Uint32Array(BLOCK / 32), touchedAt: now };
      series.blocks.set(at, block);
    }
    block.touchedAt = now;
    const isCommon = value === this.#common;
    setTo(block.bits, number % BLOCK, isCommon);
    // What was said otherwise before may be kept longer than the bit.
    if (!isCommon || this.#others.get(id, now) !== undefined) this.#others.set(id, value, now);
  }

  #seriesOf(id: string): Series | undefined {
    const last = this.#last;
    // What another dot follows is of a series whose prefix only begins so.
    if (last !== undefined && id.startsWith(last.prefix) && id.indexOf(".", last.prefix.length) < 0)
      return last;
    const series = this.#series.get(prefixOf(id));
    if (series !== undefined) this.#last = series;
    return series;
  }

  #newSeries(id: string): Series | undefined {
    const prefix = prefixOf(id);
    if (prefix === "" || !(numberOf(id, prefix.length) >= 0)) return undefined;
    const series = new Series(prefix);
    this.#series.set(prefix, series);
    this.#last = series;
    return series;
  }

  #sweep(now: number): void {
    if (now - this.#sweptAt < this.#keepMs / SWEEPS) return;
    this.#sweptAt = now;
    for (const [prefix, series] of this.#series) {
      for (const [at, { touchedAt }] of series.blocks) {
        if (now - touchedAt > this.#keepMs) series.blocks.delete(at);
      }
      if (series.blocks.size > 0 || this.#isHeld(prefix)) continue;
      this.#series.delete(prefix);
      if (this.#last === series) this.#last = undefined;
    }
  }
}

/** What stands before an id's number, the dot included; empty where there is none. */
function prefixOf(id: string): string {
  return id.slice(0, id.lastIndexOf(".") + 1);
}

/** The number from a place to the end; `NaN` of what no worker counts to. */
function numberOf(id: string, from: number): number {
  const { length } = id;
  if (length === from || length - from > MAX_DIGITS) return Number.NaN;
  let value = 0;
  for (let at = from; at < length; at++) {
    const code = id.charCodeAt(at);
    const digit = code >= 48 && code <= 57 ? code - 48 : code >= 97 && code <= 122 ? code - 87 : Number.NaN;
    value = value * RADIX + digit;
  }
  // One number has one form.
  return id.charCodeAt(from) === 48 && length - from > 1 ? Number.NaN : value;
}

function isSet(bits: Uint32Array, at: number): boolean {
  return (((bits[at >> 5] as number) >>> (at & 31)) & 1) === 1;
}

function setTo(bits: Uint32Array, at: number, isOn: boolean): void {
  const mask = 1 << (at & 31);
  const word = bits[at >> 5] as number;
  bits[at >> 5] = isOn ? word | mask : word & ~mask;
}
