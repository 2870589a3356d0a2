/**
 * Opening a broker from its description.
 *
 * @module
 */
import { readFile } from "node:fs/promises";
import type { Broker } from "../../src/broker.ts";
import type { BrokerSpec } from "./broker_spec.ts";
import type { Shell } from "./shell.ts";

/**
 * Makes the connection that a description names. An adapter is only loaded when it is used. Does no I/O; queues are opened by whoever uses them.
 *
 * @param onWarning is told what the broker could not check about the engine.
 */
export async function connectBroker(
  spec: BrokerSpec,
  shell: Pick<Shell, "platform" | "sqlite">,
  onWarning: (text: string) => void,
): Promise<Broker> {
  const { platform } = shell;
  switch (spec.kind) {
    case "memory": {
      const { MemoryBroker } = await import("../../adapters/memory.ts");
      return new MemoryBroker({ now: () => platform.now(), wallNow: () => platform.wallNow() });
    }
    case "sqlite": {
      const { SqliteBroker } = await import("../../adapters/sqlite/mod.ts");
      return new SqliteBroker({
        database: await shell.sqlite(spec.file),
        wallNow: () => platform.wallNow(),
      });
    }
    case "redis": {
      const { RedisBroker } = await import("../../adapters/redis/mod.ts");
      return new RedisBroker({ url: spec.url, token: spec.token, onWarning });
    }
    case "nats": {
      const { NatsBroker } = await import("../../adapters/nats/mod.ts").catch((error) =>
        refuseUnfound(error, platform.name),
      );
      const { token, user, password, nkeySeed, credentialsFile } = spec.login;
      if (nkeySeed !== undefined) await checkSeed(nkeySeed);
      return new NatsBroker({
        url: spec.url,
        token,
        user,
        password,
        nkeySeed,
        credentials: credentialsFile === undefined ? undefined : await readCredentialsFile(credentialsFile),
        openWebSocket: (url) => platform.openWebSocket(url),
        now: () => platform.now(),
        random: () => platform.random(),
      });
    }
  }
}

/**
 * The adapter needs a package that is not Eddy's own, and a project of its own on Deno finds none of those that its `deno.json` does not map.
 *
 * @throws {TypeError} when that is what the error says; else the error itself.
 */
function refuseUnfound(error: unknown, runtime: string): never {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (code !== "ERR_MODULE_NOT_FOUND" || !/["']nats\.ws["']/.test(String(message))) throw error;
  const mend =
    runtime === "deno"
      ? 'set "nodeModulesDir": "manual" in deno.json, or map nats.ws in its imports, after `npm ci` in Eddy\'s checkout'
      : "run `npm ci` in Eddy's checkout";
  throw new TypeError(`Cannot use the broker: nats.ws, the client of NATS, is not found; ${mend}`, {
    cause: error,
  });
}

/** The adapter refuses it too, but does not know the variable. */
async function checkSeed(text: string): Promise<void> {
  const { isUserSeed } = await import("../../adapters/nats/login.ts");
  if (isUserSeed(text)) return;
  throw new RangeError(
    "Cannot use the broker: EDDY_BROKER_NKEY_SEED is no seed of a user's nkey; give the text that begins with SU",
  );
}

async function readCredentialsFile(path: string): Promise<string> {
  const refuse = (is: string): never => {
    throw new RangeError(
      `Cannot use the broker: EDDY_NATS_CREDS names ${is}; give the path of a credentials file`,
    );
  };
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const { code, name } = error as { code?: string; name?: string };
    // Deno's: it names the file and the flag, and how to give it is told by whoever shows it.
    if (name === "NotCapable") throw error;
    return refuse(`a file that cannot be read (${code ?? "no code"})`);
  }
  const { readCredentials } = await import("../../adapters/nats/login.ts");
  return readCredentials(text) === undefined ? refuse("no credentials file (no JWT and seed in it)") : text;
}
