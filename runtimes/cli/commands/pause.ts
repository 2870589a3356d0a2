/**
 * `pause`.
 *
 * @module
 */
import { defineQueueCommand } from "../queue_command.ts";

export default defineQueueCommand({
  name: "pause",
  summary: "Let no job of a queue be claimed until resumed",
  about: `Jobs that run go on; jobs can be enqueued all the while. A pause outlives restarts,
and holds from the first job on where the queue is not there yet.`,
  makes: true,
  async run({ queue, able, tell }) {
    await able("pause", queue.pause)();
    tell(`${queue.name} is paused`, { paused: true });
    return 0;
  },
});
