/**
 * Eddy on Deno: the Platform, choosing and opening a broker, serving the HTTP app.
 *
 * @module
 */
export { type Address, type HttpServer, isLoopback, parseAddress } from "../cli/address.ts";
export { type BrokerSpec, chooseBroker, DEFAULT_BROKER, describeBroker } from "../cli/broker_spec.ts";
export { openBroker } from "./brokers.ts";
export { serveHttp } from "./http_server.ts";
export { type DenoDeployTier, denoDeployLimits } from "./limits.ts";
export { type DenoPlatformOptions, denoPlatform } from "./platform.ts";
