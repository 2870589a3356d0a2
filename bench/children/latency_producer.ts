/**
 * Enqueues jobs in a process of its own.
 *
 * @module
 */
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { type BrokerSpec, openBroker } from "../support/brokers.ts";
import { params, tell } from "../support/contender.ts";
import { type Production, produce } from "../support/produce.ts";

export interface ProducerParams extends Production {
  readonly broker: BrokerSpec;
}

const options = params<ProducerParams>();
const platform = bunPlatform();
await produce(await openBroker(options.broker, platform), platform, options);
tell("done");
