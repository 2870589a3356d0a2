/**
 * The workerd that this process started, as the operating system sees it.
 *
 * @module
 */
import { readdirSync, readFileSync } from "node:fs";

/** The ids of those that run or stand still. */
function ownWorkerds(): number[] {
  return readdirSync("/proc").filter(isOwn).map(Number);
}

function isOwn(pid: string): boolean {
  if (!/^\d+$/.test(pid)) return false;
  try {
    const [, name, parent] =
      /^\d+ \((.*)\) [^Z] (\d+) /.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
    return name === "workerd" && Number(parent) === process.pid;
  } catch {
    return false;
  }
}

/** Kills the one that this process started, and resolves when it is gone. */
export async function killWorkerd(): Promise<void> {
  const found = ownWorkerds();
  if (found.length !== 1) throw new Error(`Cannot kill workerd: there are ${found.length} of this process`);
  signal(found, "SIGKILL");
  while (ownWorkerds().length > 0) await Bun.sleep(5);
}

/** Has it stand still for so long. Resolves when it goes on, or is gone. */
export async function freezeWorkerd(forMs: number): Promise<void> {
  const found = ownWorkerds();
  signal(found, "SIGSTOP");
  await Bun.sleep(forMs);
  signal(found, "SIGCONT");
}

function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // It has gone.
    }
  }
}
