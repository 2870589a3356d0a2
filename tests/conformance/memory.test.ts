import { EXPECTED, memoryHarness } from "./harnesses.ts";
import { conformance } from "./run.ts";

conformance(memoryHarness, EXPECTED.memory);
