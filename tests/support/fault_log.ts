/**
 * When a proxy did what: the account that jobs which ran twice are held against.
 *
 * @module
 */

export interface FaultRecord {
  readonly kind: string;
  /** From when to when it could be felt, Unix milliseconds; `Infinity` while it lasts. */
  readonly fromMs: number;
  readonly toMs: number;
}

export class FaultLog {
  readonly #records: { kind: string; fromMs: number; toMs: number }[] = [];

  get records(): readonly FaultRecord[] {
    return this.#records;
  }

  /** Notes a fault of one moment. */
  add(kind: string): void {
    this.begin(kind)();
  }

  /** Notes that a fault begins; answers the function that notes its end, which may be called twice. */
  begin(kind: string): () => void {
    const record = { kind, fromMs: Date.now(), toMs: Number.POSITIVE_INFINITY };
    this.#records.push(record);
    return () => {
      record.toMs = Math.min(record.toMs, Date.now());
    };
  }
}
