/**
 * `resume`.
 *
 * @module
 */
import { defineQueueCommand } from "../queue_command.ts";

export default defineQueueCommand({
  name: "resume",
  summary: "Let the jobs of a paused queue be claimed again",
  about: "Workers see it when they next look: at once where the broker wakes them, else within some seconds.",
  async run({ queue, able, tell }) {
    await able("resume", queue.resume)();
    tell(`${queue.name} is resumed`, { paused: false });
    return 0;
  },
});
