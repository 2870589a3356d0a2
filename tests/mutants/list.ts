/**
 * All mutants. `npm run mutants` applies each in turn and demands that a named test goes red.
 *
 * @module
 */
import { ADAPTERS } from "./adapters.ts";
import { CORE } from "./core.ts";
import { HTTP } from "./http.ts";
import type { Mutant } from "./mutant.ts";

export const MUTANTS: readonly Mutant[] = [...CORE, ...ADAPTERS, ...HTTP];
