/**
 * Eddy on Bun: the Platform, choosing and opening a broker, serving the HTTP app.
 *
 * @module
 */
export { type BrokerSpec, chooseBroker, DEFAULT_BROKER, describeBroker } from "./broker_spec.ts";
export { openBroker } from "./brokers.ts";
export { type Address, type HttpServer, isLoopback, parseAddress, serveHttp } from "./http_server.ts";
export { bunPlatform } from "./platform.ts";
