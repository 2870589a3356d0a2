/**
 * Deno: from the process's start to the first claim.
 *
 * @module
 */
import { denoPlatform } from "../../runtimes/deno/platform.ts";
import { params, tell } from "../support/contender.ts";
import { type FirstClaimParams, firstClaim } from "../support/first_claim.ts";

await firstClaim(denoPlatform(), params<FirstClaimParams>());
tell("claimed");
