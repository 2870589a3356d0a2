/**
 * The Platform port's cases on Deno. Those that need a server run when its address comes in the environment.
 *
 * @module
 */
import { denoPlatform } from "../../../../runtimes/deno/mod.ts";
import {
  PLATFORM_EXPECTED,
  type PlatformHarness,
  platformApplies,
  platformCases,
  runPlatformCase,
} from "../../../conformance/platform_cases.ts";
import { same } from "../../../support/conformance_assert.ts";

const origin = Deno.env.get("EDDY_TEST_ORIGIN");
const why = "the starter of this process gave no server";

const harness: PlatformHarness = {
  name: "deno",
  lacks: origin === undefined ? { network: why, webSocket: why, stop: why } : {},
  make: () => ({
    platform: denoPlatform(),
    ...(origin === undefined ? {} : { origin }),
    // Deno lets no program signal itself without a permission to run others.
    async askToStop() {
      const response = await fetch(`${origin}/sigterm`, { method: "POST", body: String(Deno.pid) });
      await response.body?.cancel();
    },
  }),
  play: (_under, work) => work,
};

let ran = 0;
for (const one of platformCases.filter((each) => platformApplies(each, harness))) {
  Deno.test(`platform > ${one.name}`, async () => {
    await runPlatformCase(one, harness);
    ran += 1;
  });
}
if (origin !== undefined) {
  Deno.test(`platform > exactly ${PLATFORM_EXPECTED.deno} of ${platformCases.length} cases ran`, () => {
    same(ran, PLATFORM_EXPECTED.deno, "cases that ran");
  });
}
