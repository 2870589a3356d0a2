/**
 * What people type to start Eddy's programs on Bun: by what they have, which need not be Bun. Pure.
 *
 * @module
 */
import type { Start } from "../cli/shell.ts";

type Env = Readonly<Record<string, string | undefined>>;

/**
 * How commands are started in Eddy's checkout, by its scripts, or elsewhere, by the package's command. `bun` is only named to whoever started this program by it;
 * npm is there wherever Eddy was installed as its page says.
 */
export function startOn(env: Env, checkout: boolean): Start {
  if (!checkout) return { any: startedByBun(env) ? "bunx eddy" : "npx eddy" };
  return { any: scriptOn(env, "eddy"), script: (name) => scriptOn(env, name) };
}

/** How a script of the checkout's package.json is started; flags stand behind it. */
export function scriptOn(env: Env, name: string): string {
  return startedByBun(env) ? `bun run ${name}` : `npm run ${name} --`;
}

/** Whoever runs a script, or a package's command, says so in this variable. */
function startedByBun(env: Env): boolean {
  return env.npm_config_user_agent?.startsWith("bun/") === true;
}
