/**
 * The victim on Deno. Killing itself takes `--allow-run`, as all killing does.
 *
 * @module
 */
import { denoPlatform, openBroker } from "../../../../runtimes/deno/mod.ts";
import { beVictim } from "../../../support/victim.ts";

await beVictim({
  platform: denoPlatform(),
  openBroker,
  die: () => Deno.kill(Deno.pid, "SIGKILL"),
});
