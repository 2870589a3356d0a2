/**
 * The lists of permissions that the README gives for users of a nats-server, read so that a test can hand them out.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const readme = readFileSync(join(import.meta.dir, "../../README.md"), "utf8");
const OPERATIONS = ["publish", "subscribe"] as const;

/** The blocks as they stand there, without their indent: of a queue, and of a source. */
export const BLOCKS: readonly string[] = [...readme.matchAll(/^ {4}permissions \{\n[\s\S]*?\n {4}\}$/gm)].map(
  ([block]) => block.replace(/^ {4}/gm, ""),
);

export interface Entry {
  readonly operation: (typeof OPERATIONS)[number];
  /** Which of the block's comments it stands below, from 0 on. */
  readonly part: number;
  readonly subject: string;
}

/** What a block allows, entry by entry. */
export function entriesOf(block: string): readonly Entry[] {
  const comments: string[] = [];
  return OPERATIONS.flatMap((operation) => {
    const list = new RegExp(`${operation} \\{ allow \\[([^\\]]*)\\]`).exec(block)?.[1] ?? "";
    return [...list.matchAll(/# (.*)\n([^#]*)/g)].flatMap(([, comment = "", lines = ""]) => {
      if (!comments.includes(comment)) comments.push(comment);
      const part = comments.indexOf(comment);
      return [...lines.matchAll(/"([^"]+)"/g)].map((match) => ({
        operation,
        part,
        subject: match[1] as string,
      }));
    });
  });
}

/** In the words of the server's configuration. */
export function granted(entries: readonly Entry[]): string {
  const list = (operation: Entry["operation"]) => {
    const subjects = entries.filter((one) => one.operation === operation).map(({ subject }) => subject);
    // An empty list would allow everything.
    return subjects.length === 0 ? 'deny: [">"]' : `allow: ${JSON.stringify(subjects)}`;
  };
  return `permissions: { publish: { ${list("publish")} }, subscribe: { ${list("subscribe")} } }`;
}

/** Whether an error says that a permission is missing, and names the one that this entry gives, its subject as this user has it. */
export function tellsOf(error: unknown, operation: Entry["operation"], subject: string): boolean {
  const what = operation === "publish" ? "publish" : "subscribe to";
  const told = new RegExp(`let this user ${what} (\\S+); give`).exec(
    String((error as Error | undefined)?.message),
  );
  return told !== null && covers(subject, told[1] as string);
}

/** Whether a subject with wildcards stands for another, wildcards of its own included. */
function covers(pattern: string, subject: string): boolean {
  const tokens = subject.split(".");
  const wanted = pattern.split(".");
  return wanted.every((one, at) =>
    one === ">" ? tokens.length > at : one === "*" ? tokens[at] !== undefined : one === tokens[at],
  );
}
