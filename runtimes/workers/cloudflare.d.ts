/**
 * As much of the runtime's own module as is used here. A project with `@cloudflare/workers-types` has the whole of it from there; this file is not part of what it imports.
 */
declare module "cloudflare:workers" {
  export abstract class DurableObject<Env = unknown> {
    protected ctx: import("./types.ts").ObjectContext;
    protected env: Env;
    constructor(ctx: import("./types.ts").ObjectContext, env: Env);
  }
}
