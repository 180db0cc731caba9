import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { explainRefusal, socketUrl } from "./connection.ts";
import { CHANNEL, describeEnd, encodeMessage, type ShellEnd, splitInput } from "./shell-messages.ts";

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

export interface OpenTerminal {
  focus(): void;
  close(): void;
}

/** Opens a shell of the container in `place`. */
export function openTerminal(
  place: HTMLElement,
  uid: string,
  container: string,
  onEnd: (end: ShellEnd) => void,
): OpenTerminal {
  loadStyle();
  const terminal = new Terminal({
    fontSize: 13,
    cursorBlink: false,
    screenReaderMode: true,
    scrollback: 5000,
    minimumContrastRatio: 4.5,
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(place);
  terminal.attachCustomKeyEventHandler((event) => {
    // The Tab key belongs to the shell: this leaves the terminal without a mouse.
    if (event.key === "Tab" && event.shiftKey) return false;
    // Chromium would open its developer tools.
    if (event.code === "KeyC" && event.ctrlKey && event.shiftKey && terminal.hasSelection()) {
      event.preventDefault();
      if (event.type === "keydown") document.execCommand("copy");
      return false;
    }
    return true;
  });
  const path = `/page/api/pods/${encodeURIComponent(uid)}/shell?${new URLSearchParams({ container })}`;
  const socket = new WebSocket(socketUrl(path), PROTOCOL);
  socket.binaryType = "arraybuffer";
  const send = (channel: number, text: string) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(encodeMessage(channel, text));
  };
  let end: ShellEnd | undefined;
  let hasOpened = false;
  let hasTyped = false;
  const resize = () => {
    // It is hidden while another part of the pod is shown.
    if (place.clientWidth === 0) return;
    fit.fit();
    send(CHANNEL.resize, JSON.stringify({ Width: terminal.cols, Height: terminal.rows }));
  };
  socket.onopen = () => {
    hasOpened = true;
    resize();
    if (place.clientWidth > 0) terminal.focus();
  };
  socket.onmessage = ({ data }) => {
    const bytes = new Uint8Array(data as ArrayBuffer);
    if (bytes[0] === CHANNEL.stdout) terminal.write(bytes.subarray(1));
    else if (bytes[0] === CHANNEL.error && bytes.length > 1) end = describeEnd(bytes.subarray(1), hasTyped);
  };
  let isClosed = false;
  socket.onclose = async () => {
    terminal.options.disableStdin = true;
    const message = hasOpened
      ? "The connection was lost, and the shell ended with it."
      : ((await explainRefusal(path)) ?? "The connection could not be opened: try again.");
    if (!isClosed) onEnd(end ?? { message, isMissing: false });
  };
  const input = terminal.onData((text) => {
    hasTyped = true;
    for (const part of splitInput(text)) send(CHANNEL.stdin, part);
  });
  takePickedText(terminal);
  const observer = new ResizeObserver(resize);
  observer.observe(place);
  return {
    focus: () => terminal.focus(),
    close: () => {
      isClosed = true;
      observer.disconnect();
      input.dispose();
      socket.close();
      terminal.dispose();
    },
  };
}

/** Text that no key has typed, e.g. of an emoji picker: the terminal itself takes none in its mode for screen readers. */
function takePickedText(terminal: Terminal): void {
  const { textarea } = terminal;
  let isKeyDown = false;
  textarea?.addEventListener("keydown", () => {
    isKeyDown = true;
  });
  textarea?.addEventListener("keyup", () => {
    isKeyDown = false;
  });
  textarea?.addEventListener("input", (event) => {
    const { inputType, data, isComposing } = event as InputEvent;
    if (inputType === "insertText" && data && !isComposing && !isKeyDown) terminal.input(data);
  });
}
