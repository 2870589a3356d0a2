/**
 * A job's options from a request's headers.
 *
 * @module
 */
import { isHeaderName, isHeaderValue, isJobId, type Priority } from "../broker.ts";
import { Refusal } from "./answers.ts";
import { toldNamed } from "./known.ts";

export interface JobOptions {
  id?: string;
  delayMs?: number;
  priority?: Priority;
  headers?: Record<string, string>;
}

const OWN_PREFIX = "eddy-";
const HEADER_PREFIX = "eddy-header-";
const OPTIONS: readonly string[] = ["eddy-id", "eddy-delay-ms", "eddy-priority"];

/** What a refusal says of how options are given. */
export const JOB_OPTIONS_FORM = `give a job's options as the headers ${OPTIONS.join(", ")} and ${HEADER_PREFIX}NAME`;

/**
 * Reads `eddy-id`, `eddy-delay-ms`, `eddy-priority` and every `eddy-header-NAME`. Any other header of that prefix is a mistake: an option that was
 * meant and would be lost.
 *
 * @throws {Refusal} 400, naming the header that cannot be used.
 */
export function jobOptionsOf(headers: Headers): JobOptions {
  const unknown = [...headers.keys()].filter(
    (name) => name.startsWith(OWN_PREFIX) && !name.startsWith(HEADER_PREFIX) && !OPTIONS.includes(name),
  );
  if (unknown.length > 0) {
    throw new Refusal(
      400,
      "invalid-header",
      `Cannot use the ${toldNamed("header", unknown)} unknown; ${JOB_OPTIONS_FORM}`,
    );
  }
  const options: JobOptions = {};
  const id = headers.get("eddy-id");
  if (id !== null) {
    if (!isJobId(id)) refuse("eddy-id", "use 1 to 200 printable ASCII characters without space and |");
    options.id = id;
  }
  const delay = headers.get("eddy-delay-ms");
  if (delay !== null) {
    const delayMs = Number(delay);
    if (!/^\d{1,16}$/.test(delay) || !Number.isSafeInteger(delayMs)) {
      refuse("eddy-delay-ms", "use whole milliseconds from 0 on");
    }
    options.delayMs = delayMs;
  }
  const priority = headers.get("eddy-priority");
  if (priority !== null) {
    if (!isPriority(priority)) refuse("eddy-priority", "use high, normal or low");
    options.priority = priority;
  }
  const own: Record<string, string> = {};
  for (const [name, value] of headers) {
    if (!name.startsWith(HEADER_PREFIX)) continue;
    const short = name.slice(HEADER_PREFIX.length);
    if (!isHeaderName(short) || !isHeaderValue(value)) {
      refuse(
        `${HEADER_PREFIX}…`,
        "use letters, digits, _ and - in its name and printable ASCII as its value",
      );
    }
    own[short] = value;
  }
  if (Object.keys(own).length > 0) options.headers = own;
  return options;
}

/** Whether a text names a priority. */
function isPriority(text: string): text is Priority {
  return text === "high" || text === "normal" || text === "low";
}

function refuse(header: string, mend: string): never {
  throw new Refusal(400, "invalid-header", `Cannot use the header ${header}: it does not fit; ${mend}`);
}
