/**
 * Printing log lines.
 *
 * @module
 */
import type { LogLevel, LogSink } from "../../src/job.ts";
import { printable } from "./printable.ts";

const RANK: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

export interface LogOptions {
  /** JSON lines instead of readable ones. */
  readonly json: boolean;
  /** Lines below this level are left out. */
  readonly least: LogLevel;
  readonly print: (line: string) => void;
  /** Unix milliseconds. */
  readonly wallNow: () => number;
}

/** Makes a sink that prints one line for each entry, whatever its texts hold. */
export function printingLog(options: LogOptions): LogSink {
  return (level, message, fields) => {
    if (RANK[level] < RANK[options.least]) return;
    const time = new Date(options.wallNow()).toISOString();
    options.print(
      options.json ? jsonLine(time, level, message, fields) : textLine(time, level, message, fields),
    );
  };
}

function jsonLine(time: string, level: LogLevel, message: string, fields: Record<string, unknown>): string {
  try {
    return JSON.stringify({ ...fields, time, level, message }, plain);
  } catch {
    // A cycle or something as odd in a field must not cost the line, nor the job that logged it.
    return JSON.stringify({ time, level, message, fields: "could not be written" });
  }
}

function textLine(time: string, level: LogLevel, message: string, fields: Record<string, unknown>): string {
  const pairs = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}=${fieldText(value)}`);
  return printable(`${time} ${level.toUpperCase().padEnd(5)} ${message}${pairs.join("")}`);
}

function fieldText(value: unknown): string {
  if (typeof value === "string") return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  try {
    return JSON.stringify(value, plain) ?? String(value);
  } catch {
    return `(${typeof value})`;
  }
}

function plain(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  return value instanceof Error ? `${value.name}: ${value.message}` : value;
}
