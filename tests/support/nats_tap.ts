/**
 * Looks into what a client sends to a nats-server, before it is masked, and speaks to the server past every adapter.
 *
 * @module
 */
import { connect, type NatsConnection } from "nats.ws";

/** A WebSocket whose outgoing frames are shown to `seen` as text, before they leave. */
export function tapped(seen: (text: string) => void): (url: string) => WebSocket {
  return (url) => {
    const socket = new WebSocket(url);
    const send = socket.send.bind(socket);
    socket.send = (data) => {
      seen(new TextDecoder().decode(data as Uint8Array));
      send(data);
    };
    return socket;
  };
}

export interface ConsumerState {
  readonly num_pending: number;
  readonly num_ack_pending: number;
  readonly config: { readonly ack_wait: number };
}

/** An operator's connection. */
export class Operator {
  readonly nc: NatsConnection;

  private constructor(nc: NatsConnection) {
    this.nc = nc;
  }

  static async connect(url: string, options: Record<string, unknown> = {}): Promise<Operator> {
    return new Operator(await connect({ servers: url, reconnect: false, ...options }));
  }

  /** Asks JetStream's API. Answers an error as it stands. */
  async api<T = Record<string, unknown>>(subject: string, body: unknown = {}): Promise<T> {
    const reply = await this.nc.request(`$JS.API.${subject}`, JSON.stringify(body), { timeout: 5_000 });
    return reply.json<T>();
  }

  consumer(stream: string, consumer: string): Promise<ConsumerState> {
    return this.api(`CONSUMER.INFO.${stream}.${consumer}`);
  }

  /** Publishes as `nats pub` does, and waits until a stream has it. */
  async publish(subject: string, body: string): Promise<void> {
    await this.nc.request(subject, body, { timeout: 5_000 });
  }

  close(): Promise<void> {
    return this.nc.close();
  }
}
