/**
 * Eddy on Cloudflare Workers: the entry points of a Worker, a queue and a consumer as Durable Objects, and the Platform.
 *
 * Loads in workerd only: the classes of objects extend the runtime's own.
 *
 * @module
 */
export {
  type ConsumerObjectClass,
  type ConsumerObjectOptions,
  type ConsumerObjectStub,
  type ConsumerStatus,
  consumerObject,
} from "./consumer_object.ts";
export {
  type CronHandler,
  type CronHandlerOptions,
  createCronHandler,
  type WorkersDrainOptions,
} from "./cron.ts";
export type { DefinitionSource } from "./definition.ts";
export type { GapOptions } from "./gaps.ts";
export {
  createWorkersHandler,
  type WorkersHandler,
  type WorkersHandlerOptions,
} from "./handler.ts";
export type { InvocationOptions } from "./invocations.ts";
export { type WorkersPlan, type WorkersTrigger, workersLimits } from "./limits.ts";
export { consoleLog } from "./log.ts";
export { DurableObjectBroker, type DurableObjectBrokerOptions } from "./object_broker.ts";
export type { ObjectAnswer, ObjectCall, QueueObjectStub } from "./object_protocol.ts";
export { type WorkersPlatformOptions, workersPlatform } from "./platform.ts";
export { type QueueObjectClass, type QueueObjectOptions, queueObject } from "./queue_object.ts";
export type {
  AlarmStorage,
  InvocationContext,
  ObjectContext,
  ObjectNamespace,
  ScheduledEvent,
} from "./types.ts";
