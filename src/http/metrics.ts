/**
 * Numbers in Prometheus' text format, version 0.0.4.
 *
 * @module
 */
import type { QueueSizes } from "../broker.ts";
import type { QueueStats } from "../stats.ts";

/** The content type of the text. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export interface MetricsInput {
  /** What the worker beside the app counted; empty without one. */
  readonly stats: readonly QueueStats[];
  /** The sizes of each queue; without those that the broker did not tell. */
  readonly sizes: ReadonlyMap<string, QueueSizes>;
  readonly brokerUp: boolean;
  /** Requests made to the broker so far. */
  readonly brokerRequests: number;
}

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

const COUNTERS = [
  ["claims", "Claims answered"],
  ["emptyClaims", "Claims that brought nothing"],
  ["received", "Deliveries received"],
  ["started", "Jobs started"],
  ["acked", "Jobs finished"],
  ["retried", "Jobs given back for another attempt"],
  ["dead", "Jobs that became dead letters"],
  ["released", "Jobs given back unstarted"],
  ["lost", "Deliveries whose lease was over before they were settled, or whose verdict was never confirmed"],
  ["abandoned", "Jobs whose handler ignored its signal and was left behind"],
  ["renewals", "Leases renewed"],
  ["brokerErrors", "Requests to the broker that failed"],
] as const satisfies readonly (readonly [keyof QueueStats, string])[];

/** Writes everything as one text. Queue names need no escaping: their alphabet has nothing that would. */
export function renderMetrics(input: MetricsInput): string {
  const lines: string[] = [];
  const write = (name: string, type: "counter" | "gauge", help: string, samples: readonly Sample[]) => {
    if (samples.length === 0) return;
    lines.push(`# HELP ${name} ${help}.`, `# TYPE ${name} ${type}`);
    for (const [labels, value] of samples) {
      const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
      lines.push(`${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}`);
    }
  };
  const perQueue = (value: (stats: QueueStats) => number | undefined): Sample[] =>
    input.stats.flatMap((stats) => {
      const number = value(stats);
      return number === undefined ? [] : [[{ queue: stats.queue }, number] as const];
    });

  for (const [field, help] of COUNTERS) {
    write(
      `eddy_${snake(field)}_total`,
      "counter",
      help,
      perQueue((stats) => stats[field]),
    );
  }
  write(
    "eddy_running_jobs",
    "gauge",
    "Jobs running in this worker",
    perQueue((stats) => stats.running),
  );
  write(
    "eddy_held_jobs",
    "gauge",
    "Jobs this worker holds, running ones included",
    perQueue((stats) => stats.held),
  );
  write(
    "eddy_prefetch_jobs",
    "gauge",
    "Jobs the last claim was sized to",
    perQueue((stats) => stats.prefetch),
  );
  write(
    "eddy_job_seconds_average",
    "gauge",
    "Moving average of the time a job takes",
    perQueue((stats) => seconds(stats.averageMs)),
  );
  write(
    "eddy_claim_seconds_average",
    "gauge",
    "Moving average of a claim's round trip",
    perQueue((stats) => seconds(stats.roundTripMs)),
  );

  const sizes = [...input.sizes];
  write(
    "eddy_queue_jobs",
    "gauge",
    "Jobs in the queue by state",
    sizes.flatMap(([queue, size]) =>
      (["ready", "delayed", "held", "dead"] as const).map(
        (state) => [{ queue, state }, size[state]] as const,
      ),
    ),
  );
  write(
    "eddy_queue_paused",
    "gauge",
    "Whether the queue is paused",
    sizes.map(([queue, size]) => [{ queue }, size.paused ? 1 : 0] as const),
  );
  write("eddy_broker_up", "gauge", "Whether the broker answered", [[{}, input.brokerUp ? 1 : 0]]);
  write("eddy_broker_requests_total", "counter", "Requests made to the broker; on NATS, connections opened", [
    [{}, input.brokerRequests],
  ]);
  return `${lines.join("\n")}\n`;
}

function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1_000;
}

function snake(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
