import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";

/**
 * Opens a shell of the container in `place`. Binary frames are its input and output; text frames are JSON: `{width,
 * height}` to the server, `{message}` from it before it closes.
 * @returns a function that ends it
 */
export function openTerminal(
  place: HTMLElement,
  uid: string,
  container: string,
  onEnd: (message: string) => void,
): () => void {
  const terminal = new Terminal({ fontSize: 13, cursorBlink: false, screenReaderMode: true, scrollback: 5000 });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(place);
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const query = new URLSearchParams({ container });
  const socket = new WebSocket(`${scheme}://${location.host}/page/api/pods/${encodeURIComponent(uid)}/shell?${query}`);
  socket.binaryType = "arraybuffer";
  const encoder = new TextEncoder();
  let message = "The connection was closed.";
  const resize = () => {
    fit.fit();
    if (socket.readyState === WebSocket.OPEN)
      socket.send(JSON.stringify({ width: terminal.cols, height: terminal.rows }));
  };
  socket.onopen = () => {
    resize();
    terminal.focus();
  };
  socket.onmessage = ({ data }) => {
    if (typeof data === "string") message = (JSON.parse(data) as { message: string }).message;
    else terminal.write(new Uint8Array(data as ArrayBuffer));
  };
  socket.onclose = () => onEnd(message);
  const input = terminal.onData((text) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(encoder.encode(text));
  });
  const observer = new ResizeObserver(resize);
  observer.observe(place);
  return () => {
    observer.disconnect();
    input.dispose();
    socket.onclose = null;
    socket.close();
    terminal.dispose();
  };
}
