/**
 * Bun: from the process's start to the first claim.
 *
 * @module
 */
import { bunPlatform } from "../../runtimes/bun/platform.ts";
import { params, tell } from "../support/contender.ts";
import { type FirstClaimParams, firstClaim } from "../support/first_claim.ts";

await firstClaim(bunPlatform(), params<FirstClaimParams>());
tell("claimed");
