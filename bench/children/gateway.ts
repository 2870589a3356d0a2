/**
 * Redis over HTTP in a process of its own.
 *
 * @module
 */
import { startGateway } from "../../runtimes/bun/gateway/gateway.ts";
import { params, tell } from "../support/contender.ts";

const { redis, token } = params<{ redis: string; token: string }>();
tell({ url: startGateway({ redis, token }).url });
