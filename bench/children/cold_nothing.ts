/**
 * A runtime that starts and does nothing.
 *
 * @module
 */
import { tell } from "../support/contender.ts";

tell("up");
