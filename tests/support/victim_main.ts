/**
 * The victim on Bun.
 *
 * @module
 */
import { bunPlatform, openBroker } from "../../runtimes/bun/mod.ts";
import { beVictim } from "./victim.ts";

await beVictim({
  platform: bunPlatform(),
  openBroker,
  die: () => process.kill(process.pid, "SIGKILL"),
});
