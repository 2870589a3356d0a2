/**
 * GitHub's example webhook payloads, as the package `@octokit/webhooks-examples` has them.
 *
 * @module
 */
import events from "@octokit/webhooks-examples";

/** One payload: the event it belongs to and its JSON text. */
export interface Payload {
  readonly event: string;
  readonly text: string;
}

/** Every example payload of every event. */
export function githubPayloads(): readonly Payload[] {
  return events.flatMap(({ name, examples }) =>
    (examples as readonly unknown[]).map((example) => ({ event: name, text: JSON.stringify(example) })),
  );
}
