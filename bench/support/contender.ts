/**
 * The child's side of `child.ts`: reading what to do, telling what came of it, ending with the bench.
 *
 * @module
 */
import process from "node:process";

/** What this child is to do. */
export function params<T>(): T {
  return JSON.parse(process.argv[2] as string) as T;
}

/** Tells the bench something. */
export function tell(message: unknown): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

/** The processor time that this process has used so far, in milliseconds. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

const heard: unknown[] = [];
const waiting: ((message: unknown) => void)[] = [];
let text = "";

process.stdin.setEncoding("utf8");
process.stdin.on("data", (part: string) => {
  text += part;
  const lines = text.split("\n");
  text = lines.pop() ?? "";
  for (const line of lines) {
    const message: unknown = JSON.parse(line);
    const next = waiting.shift();
    if (next === undefined) heard.push(message);
    else next(message);
  }
});
// The bench is done with this child, or gone.
process.stdin.on("end", () => process.exit(0));

/** What the bench says next. */
export function hear<T>(): Promise<T> {
  if (heard.length > 0) return Promise.resolve(heard.shift() as T);
  return new Promise((resolve) => waiting.push(resolve as (message: unknown) => void));
}
