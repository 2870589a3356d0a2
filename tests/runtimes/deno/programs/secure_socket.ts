/**
 * Opens the `wss:` URL of its argument by the Deno Platform, sends one message and says what came back.
 *
 * @module
 */
import { denoPlatform } from "../../../../runtimes/deno/mod.ts";

const socket = denoPlatform().openWebSocket(Deno.args[0] ?? "");
socket.onopen = () => socket.send("over TLS");
socket.onerror = () => console.log("error");
socket.onmessage = ({ data }) => {
  console.log(data);
  socket.close(1000);
};
socket.onclose = ({ code }) => console.log(code);
