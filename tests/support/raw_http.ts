/**
 * HTTP spoken by hand: bytes as they are, for requests that no client would make.
 *
 * @module
 */

/** How long an answer may take before the test fails, in milliseconds. */
const PATIENCE_MS = 20_000;

export interface RawOptions {
  /** Ends the sending side after the bytes, so that a server which waits for more sees that none comes. Default false. */
  readonly end?: boolean;
}

/**
 * Sends bytes as they are; resolves with all that is answered once the first answer is complete, or the server has closed the connection.
 *
 * @throws {Error} when neither happens within 20 s.
 */
export function rawHttp(
  port: number,
  request: string | Uint8Array,
  options: RawOptions = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const late = setTimeout(() => reject(new Error("the server neither answered nor closed")), PATIENCE_MS);
    Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        open(socket) {
          socket.write(request);
          if (options.end === true) socket.shutdown();
        },
        data(socket, bytes) {
          answer += bytes.toString();
          if (isComplete(answer)) socket.end();
        },
        close() {
          clearTimeout(late);
          resolve(answer);
        },
      },
    }).catch(reject);
  });
}

function isComplete(answer: string): boolean {
  const end = answer.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const length = Number(/^content-length: (\d+)/im.exec(answer.slice(0, end))?.[1] ?? 0);
  return answer.length >= end + 4 + length;
}
