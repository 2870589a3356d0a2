/** The Platform port's cases on Bun and on the simulated platform. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { SimulatedPlatform } from "../../runtimes/simulated.ts";
import { startPlatformServer } from "../support/platform_server.ts";
import {
  PLATFORM_EXPECTED,
  type PlatformHarness,
  platformApplies,
  platformCases,
  runPlatformCase,
} from "./platform_cases.ts";

let server: ReturnType<typeof startPlatformServer>;
beforeAll(() => {
  server = startPlatformServer();
});
afterAll(() => server.stop());

const HARNESSES: readonly PlatformHarness[] = [
  {
    name: "bun",
    lacks: {},
    make: () => ({
      platform: bunPlatform(),
      origin: server.origin,
      askToStop: () => {
        process.kill(process.pid, "SIGTERM");
      },
    }),
    play: (_under, work) => work,
  },
  {
    name: "simulated",
    lacks: { network: "it has none", webSocket: "it has no network" },
    make: () => {
      const platform = new SimulatedPlatform({ seed: 7 });
      return { platform, askToStop: () => platform.requestStop() };
    },
    play: ({ platform }, work) => (platform as SimulatedPlatform).run(work),
  },
];

for (const harness of HARNESSES) {
  describe(`platform: ${harness.name}`, () => {
    let ran = 0;
    for (const one of platformCases.filter((each) => platformApplies(each, harness))) {
      test(one.name, async () => {
        await runPlatformCase(one, harness);
        ran += 1;
      });
    }
    const expected = PLATFORM_EXPECTED[harness.name as "bun" | "simulated"];
    test(`exactly ${expected} of ${platformCases.length} cases ran`, () => {
      expect(ran).toBe(expected);
    });
  });
}
