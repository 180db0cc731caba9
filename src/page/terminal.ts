import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";

/** Channels of `v5.channel.k8s.io`: the first byte of each message. */
const CHANNEL = { stdin: 0, stdout: 1, error: 3, resize: 4 } as const;
const PROTOCOL = "v5.channel.k8s.io";
const STYLE = "/page/assets/terminal.css";

/** Loads the terminal's style sheet on demand: few users open a terminal. */
function loadStyle(): void {
  if (document.querySelector(`link[href="${STYLE}"]`)) return;
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = STYLE;
  document.head.append(link);
}

/**
 * Opens a shell of the container in `place`.
 * @param onEnd called with the reason of the end
 * @returns a function that ends it
 */
export function openTerminal(
  place: HTMLElement,
  uid: string,
  container: string,
  onEnd: (message: string) => void,
): () => void {
  loadStyle();
  const terminal = new Terminal({
    fontSize: 13,
    cursorBlink: false,
    screenReaderMode: true,
    scrollback: 5000,
    minimumContrastRatio: 4.5,
  });
  // The Tab key belongs to the shell: this is the way out for those who have no mouse.
  terminal.attachCustomKeyEventHandler(({ key, shiftKey }) => !(key === "Tab" && shiftKey));
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(place);
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const query = new URLSearchParams({ container });
  const address = `${scheme}://${location.host}/page/api/pods/${encodeURIComponent(uid)}/shell?${query}`;
  const socket = new WebSocket(address, PROTOCOL);
  socket.binaryType = "arraybuffer";
  const encoder = new TextEncoder();
  const send = (channel: number, text: string) => {
    if (socket.readyState !== WebSocket.OPEN) return;
    const data = encoder.encode(text);
    const message = new Uint8Array(data.length + 1);
    message[0] = channel;
    message.set(data, 1);
    socket.send(message);
  };
  let message = "The connection was closed.";
  const resize = () => {
    fit.fit();
    send(CHANNEL.resize, JSON.stringify({ Width: terminal.cols, Height: terminal.rows }));
  };
  socket.onopen = () => {
    resize();
    terminal.focus();
  };
  socket.onmessage = ({ data }) => {
    const bytes = new Uint8Array(data as ArrayBuffer);
    if (bytes[0] === CHANNEL.stdout) terminal.write(bytes.subarray(1));
    else if (bytes[0] === CHANNEL.error && bytes.length > 1) message = describeEnd(bytes.subarray(1));
  };
  socket.onclose = () => onEnd(message);
  const input = terminal.onData((text) => send(CHANNEL.stdin, text));
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

/** Exit code that the engine gives when it cannot execute the command. */
const CANNOT_EXECUTE = "126";

interface EndStatus {
  status?: string;
  message?: string;
  details?: { causes?: { reason?: string; message?: string }[] };
}

/** @param status the last message of the error channel, a `Status` in JSON */
function describeEnd(status: Uint8Array): string {
  const {
    status: outcome,
    message = "The shell failed.",
    details,
  } = JSON.parse(new TextDecoder().decode(status)) as EndStatus;
  if (outcome === "Success") return "The shell ended.";
  const exitCode = details?.causes?.find(({ reason }) => reason === "ExitCode")?.message;
  if (exitCode === CANNOT_EXECUTE) return "No shell could be started: this image may have none.";
  return exitCode === undefined ? message : `The shell ended with exit code ${exitCode}.`;
}
