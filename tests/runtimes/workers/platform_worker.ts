/**
 * The Platform port's cases as a Worker: `POST /run` runs them and answers what became of each.
 *
 * @module
 */
import { type InvocationContext, workersPlatform } from "../../../runtimes/workers/mod.ts";
import {
  type PlatformHarness,
  platformApplies,
  platformCases,
  runPlatformCase,
} from "../../conformance/platform_cases.ts";
import { type CaseResult, PLATFORM_CELL } from "./cells.ts";

export default {
  async fetch(
    _request: Request,
    env: { readonly ORIGIN: string },
    ctx: InvocationContext,
  ): Promise<Response> {
    const harness: PlatformHarness = {
      ...PLATFORM_CELL,
      make: () => ({ platform: workersPlatform({ ctx, plan: "paid" }), origin: env.ORIGIN }),
      play: (_under, work) => work,
    };
    const results: CaseResult[] = [];
    for (const one of platformCases.filter((each) => platformApplies(each, harness))) {
      try {
        await runPlatformCase(one, harness);
        results.push({ name: one.name, error: null });
      } catch (error) {
        results.push({
          name: one.name,
          error: error instanceof Error ? `${error.name}: ${error.message}` : "no error",
        });
      }
    }
    return Response.json(results);
  },
};
