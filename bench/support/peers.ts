/**
 * The peers: packages of a folder of their own, so that nothing of them comes near the project's.
 *
 * @module
 */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const FOLDER = resolve(import.meta.dir, "..");

interface Manifest {
  readonly devDependencies: Readonly<Record<string, string>>;
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}

function wanted(): Readonly<Record<string, string>> {
  return (readJson(join(FOLDER, "package.json")) as Manifest).devDependencies;
}

function installed(name: string): string | undefined {
  const path = join(FOLDER, "node_modules", name, "package.json");
  return existsSync(path) ? (readJson(path) as { version: string }).version : undefined;
}

/**
 * Installs the peers from the lockfile where they are missing or of another version.
 *
 * @throws {Error} when npm cannot install them.
 */
export async function installPeers(progress: (text: string) => void): Promise<void> {
  if (Object.entries(wanted()).every(([name, version]) => installed(name) === version)) return;
  progress("installing the peers");
  const npm = Bun.spawn(["npm", "ci", "--no-fund", "--no-audit", "--loglevel", "error"], {
    cwd: FOLDER,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const [code, errors] = await Promise.all([npm.exited, new Response(npm.stderr).text()]);
  if (code !== 0)
    throw new Error(`Cannot install the peers: npm ci in bench/ ended with ${code}; ${errors.slice(-500)}`);
}

/** A peer as it is named in a table: `BullMQ 6.7.0`. */
export function peer(title: string, name: string): string {
  return `${title} ${installed(name) ?? wanted()[name] ?? ""}`.trim();
}
