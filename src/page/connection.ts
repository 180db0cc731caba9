import { useEffect, useState } from "preact/hooks";
import {
  answerWithinMs,
  hasSlept,
  mustReplace,
  Reconnect,
  retryAfterMs,
  SILENCE_MS,
  sleep,
  TICK_MS,
  type Wake,
} from "./reconnect.ts";
import { readToken } from "./router.ts";
import { applySnapshot, applyUpdate, EMPTY_STATE, type PageState } from "./store.ts";
import type { ActionResult, ApplyResult, CompareResult, SessionState, Snapshot, Update } from "./wire.ts";

/** Follows the stream and calls `onState` at most once per animation frame. @returns a function that ends it */
export function followState(first: PageState, onState: (state: PageState) => void): () => void {
  let state = first;
  let frame = 0;
  let failures = 0;
  let heardAtMs = first.heardAtMs;
  const gone = new AbortController();
  const reconnect = new Reconnect();
  const set = (next: PageState) => {
    state = next;
    if (frame !== 0) return;
    // A hidden tab gets no frames; it catches up when it is shown.
    frame = requestAnimationFrame(() => {
      frame = 0;
      onState(state);
    });
  };
  const onEvent = (type: StreamEvent, data: string) => {
    heardAtMs = Date.now();
    if (type === "build") set({ ...state, newBuild: data === ownBuild() ? "" : data });
    else if (type === "snapshot") {
      failures = 0;
      set(applySnapshot(JSON.parse(data) as Snapshot, heardAtMs, state));
    } else if (type === "update") set(applyUpdate(state, JSON.parse(data) as Update, heardAtMs));
  };
  const explainLoss = async (connection: AbortSignal) => {
    const refusal = await readRefusal();
    if (connection.aborted || state.connection !== "lost") return;
    if (refusal === LOCKED) set({ ...EMPTY_STATE, connection: "locked" });
    else set({ ...state, refusal });
  };
  const run = async () => {
    while (!gone.signal.aborted) {
      await untilShown(gone.signal);
      const connection = reconnect.begin(gone.signal);
      const isExpired = await readStream(connection, onEvent, answerWithinMs(failures));
      // The next stream has what needs no session.
      if (connection.aborted || isExpired) continue;
      set({ ...state, connection: "lost", heardAtMs });
      void explainLoss(connection);
      await sleep(retryAfterMs(failures++), connection);
    }
  };
  void run();
  onLongHidden(() => reconnect.now(), gone.signal);
  onWake((wake) => {
    if (mustReplace(wake, state.connection, Date.now() - heardAtMs)) reconnect.now();
  }, gone.signal);
  return () => {
    gone.abort();
    cancelAnimationFrame(frame);
  };
}

type StreamEvent = "build" | "snapshot" | "update" | "ping" | "expired";

export const socketUrl = (path: string): string =>
  `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}`;

/** Why a WebSocket was refused, which a browser tells no script: the same address as a plain request does; undefined: it would be opened now. */
export async function explainRefusal(path: string): Promise<string | undefined> {
  const response = await fetch(path).catch(() => undefined);
  if (!response) return NO_ANSWER;
  return response.ok || response.status === 400 ? undefined : refusalOf(response);
}

const NO_ANSWER = "The kubelet does not answer.";
const refusalOf = async (response: Response) => (await response.text()).trim().slice(0, 300);

/** Reads one stream to its end. @returns true when the session has expired; false when the connection broke, was silent, or the signal aborted */
const readStream = (
  signal: AbortSignal,
  onEvent: (type: StreamEvent, data: string) => void,
  firstMs: number,
): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = new WebSocket(socketUrl("/page/stream"));
    let silence: ReturnType<typeof setTimeout> | undefined;
    const end = (isExpired: boolean) => {
      socket.onmessage = null;
      socket.close();
      clearTimeout(silence);
      signal.removeEventListener("abort", onLoss);
      resolve(isExpired);
    };
    const onLoss = () => end(false);
    const expect = (withinMs: number) => {
      clearTimeout(silence);
      silence = setTimeout(onLoss, withinMs);
    };
    socket.onmessage = ({ data }: MessageEvent<string>) => {
      const space = data.indexOf(" ");
      const type = data.slice(0, space) as StreamEvent;
      if (type === "expired") return end(true);
      expect(SILENCE_MS);
      onEvent(type, data.slice(space + 1));
    };
    socket.onclose = onLoss;
    signal.addEventListener("abort", onLoss);
    expect(firstMs);
  });

/** The state in the document; the empty one where it shows none. */
export function readFirstState(): PageState {
  const text = document.getElementById("state")?.textContent;
  if (!text) return EMPTY_STATE;
  return { ...applySnapshot(JSON.parse(text) as Snapshot, Date.now()), connection: "connecting", connects: 0 };
}

const LOCKED = "locked";
const SESSION_MS = 4000;

/** Why the server answers but sends no stream; "" when it does not answer, {@link LOCKED} when it wants a session. */
async function readRefusal(): Promise<string> {
  try {
    // A request that hangs would take one of the browser's few connections.
    const response = await fetch("/page/api/session", { signal: AbortSignal.timeout(SESSION_MS) });
    if (response.status === 401) return LOCKED;
    if (!response.ok) return refusalOf(response);
    const { openPages, mostPages } = (await response.json()) as SessionState;
    return openPages >= mostPages ? `it sends updates to ${mostPages} pages at most` : "";
  } catch {
    return "";
  }
}

class RequestFailed extends Error {}

/** @throws RequestFailed */
export async function fetchJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, { ...(signal && { signal }), headers: { Accept: "application/json" } });
  if (!response.ok) throw new RequestFailed((await response.text()).slice(0, 500));
  return (await response.json()) as T;
}

/** Never rejects. @param failed makes a response of the reason why there is none */
async function post<T>(path: string, body: unknown, failed: (message: string) => T): Promise<T> {
  try {
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (response.ok) return (await response.json()) as T;
    return failed((await response.text()).slice(0, 2000) || `HTTP ${response.status}`);
  } catch {
    return failed(NO_ANSWER);
  }
}

export const act = (path: string, body: unknown = {}): Promise<ActionResult> =>
  post(path, body, (message) => ({ ok: false, message }));

export const applyManifest = (manifest: string, dryRun: boolean): Promise<ApplyResult> =>
  post("/page/api/apply", { manifest, dryRun }, (message) => ({ objects: [], problems: [message] }));

export const compareManifest = (manifest: string): Promise<CompareResult> =>
  post("/page/api/compare", { manifest }, (message) => ({ changes: [], leftOut: 0, problems: [message] }));

/** Exchanges the one-time token of the address (`#token=…`) for a session, and removes it from the address. */
export async function logInFromAddress(): Promise<string | undefined> {
  const token = readToken(location.hash);
  if (token === undefined) return undefined;
  history.replaceState(null, "", "#/");
  const { ok, message } = await act("/page/login", { token });
  return ok ? undefined : message;
}

/** Key of the session storage: the build for which this tab was loaded again. */
const RELOADED_FOR = "kubelet-ts-reloaded-for";

/** The script of this document: its name changes with the contents of the page. */
const ownBuild = (): string =>
  document.querySelector<HTMLScriptElement>('script[type="module"]')?.src.split("/").at(-1) ?? "";

/** Loads the page of another build: once, in case two builds take turns. */
export function reloadFor(build: string): void {
  try {
    if (sessionStorage.getItem(RELOADED_FOR) === build) return;
    sessionStorage.setItem(RELOADED_FOR, build);
  } catch {
    // This browser stores nothing.
    return;
  }
  location.reload();
}

const RETRY_PART_MS = 2000;

/**
 * Loads a part of the script. Chromium never asks again for one that it could not load: then the page is loaded again when
 * the kubelet answers, as for the script itself.
 */
export async function loadPart<T>(load: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const part = await load().catch(() => undefined);
  if (signal.aborted) return undefined;
  if (part) return part;
  do await sleep(RETRY_PART_MS, signal);
  while (!signal.aborted && (await explainRefusal("/page/api/session")) === NO_ANSWER);
  if (!signal.aborted) location.reload();
  return undefined;
}

/** Loads once per `key` and again on each `revision`; keeps the last value meanwhile. */
export function useLoaded<T>(key: string, revision: unknown, load: (signal: AbortSignal) => Promise<T>) {
  const [state, setState] = useState<{ key: string; value?: T; error?: string }>({ key });
  useEffect(() => {
    const controller = new AbortController();
    load(controller.signal).then(
      (value) => setState({ key, value }),
      (error: Error) => {
        if (error instanceof RequestFailed)
          setState((old) => ({ ...(old.key === key ? old : { key }), error: error.message }));
      },
    );
    return () => controller.abort();
  }, [key, revision]);
  return state.key === key ? state : { key };
}

/** A tab that is hidden for this time gives its connections back. */
const HIDDEN_MS = 30_000;

/** Resolves when the tab is shown, or the signal aborts. */
export function untilShown(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const shown = new AbortController();
    const end = () => {
      if (document.hidden && !signal.aborted) return;
      shown.abort();
      resolve();
    };
    document.addEventListener("visibilitychange", end, { signal: shown.signal });
    signal.addEventListener("abort", end, { signal: shown.signal });
  });
}

/** Calls back when the tab has been hidden for a while, and when the browser keeps the page for its "back" button. */
export function onLongHidden(callback: () => void, signal: AbortSignal): void {
  let timer = 0;
  const onChange = () => {
    clearTimeout(timer);
    if (document.hidden) timer = window.setTimeout(callback, HIDDEN_MS);
  };
  onChange();
  document.addEventListener("visibilitychange", onChange, { signal });
  addEventListener("pagehide", ({ persisted }) => persisted && callback(), { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
}

/** Calls back with `shown` when the reader or the network is back; with `slept` when the clock tells that the machine slept. */
function onWake(callback: (wake: Wake) => void, signal: AbortSignal): void {
  let timer: ReturnType<typeof setInterval> | undefined;
  let lastMs = 0;
  const look = (isShown = false) => {
    const nowMs = Date.now();
    const slept = timer !== undefined && hasSlept(lastMs, nowMs);
    lastMs = nowMs;
    if (slept) callback("slept");
    else if (isShown) callback("shown");
  };
  const onChange = (isShown: boolean) => {
    if (document.hidden) {
      // Its timers would be late by design.
      clearInterval(timer);
      timer = undefined;
      return;
    }
    look(isShown);
    timer ??= setInterval(look, TICK_MS);
  };
  onChange(false);
  const onShown = () => onChange(true);
  document.addEventListener("visibilitychange", onShown, { signal });
  for (const event of ["focus", "online"]) addEventListener(event, onShown, { signal });
  addEventListener("pageshow", ({ persisted }) => persisted && onShown(), { signal });
  signal.addEventListener("abort", () => clearInterval(timer));
}
