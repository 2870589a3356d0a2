/**
 * A worker process that is made to be killed, on any runtime. It writes what happens to it, line by line, to a ledger file that outlives it; each line is on its way to the kernel
 * before the next step is taken, so a SIGKILL loses none.
 *
 * Settings come as JSON in EDDY_VICTIM. Lines: `ready`, `start ID ATTEMPT`, `end ID`, `ack ID`, `retry ID`, `dead ID`, `release ID` (settled so), `lost ID`, `stopped`.
 *
 * @module
 */
import { appendFileSync } from "node:fs";
import process from "node:process";
import { type BrokerSpec, chooseBroker } from "../../runtimes/cli/broker_spec.ts";
import {
  type Broker,
  defineWorker,
  type HandlerOptions,
  type Platform,
  queue,
  startWorker,
} from "../../src/mod.ts";

export interface VictimSettings {
  readonly broker: string;
  readonly queue: string;
  readonly ledger: string;
  readonly options: HandlerOptions;
  /** How long each job takes, in milliseconds. */
  readonly jobMs: number;
  readonly graceMs: number;
}

/** A job's body: `poison` kills the worker that runs it. */
export interface VictimBody {
  readonly poison?: boolean;
}

/** What the victim needs of its runtime. */
export interface VictimRuntime {
  readonly platform: Platform;
  openBroker(spec: BrokerSpec, platform: Platform): Promise<Broker>;
  /** Ends this process as SIGKILL would. */
  die(): void;
}

/** Works until it is killed, or told to stop. */
export async function beVictim({ platform, openBroker, die }: VictimRuntime): Promise<void> {
  const settings: VictimSettings = JSON.parse(process.env.EDDY_VICTIM ?? "{}");
  const write = (line: string) => appendFileSync(settings.ledger, `${line}\n`);
  const broker = await openBroker(chooseBroker(settings.broker, process.env), platform);
  const definition = defineWorker({
    graceMs: settings.graceMs,
    queues: [
      queue<VictimBody>(settings.queue).handle(async (job) => {
        write(`start ${job.id} ${job.attempt}`);
        if (job.body.poison === true) die();
        await new Promise<void>((resolve) => {
          platform.setTimer(settings.jobMs, resolve);
        });
        write(`end ${job.id}`);
      }, settings.options),
    ],
  });
  const worker = await startWorker(definition, {
    broker,
    platform,
    on: (event) => {
      if (event.type === "settled") write(`${event.verdict} ${event.jobId}`);
      if (event.type === "lost") write(`lost ${event.jobId}`);
    },
  });
  write("ready");
  platform.onStop(async (reason) => {
    await worker.stop(reason);
    write("stopped");
    await broker.close();
    process.exit(0);
  });
}
