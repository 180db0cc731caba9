import { ownBuild } from "./page-build.ts";
import { answerWithinMs, mustReplace, Reconnect, retryAfterMs, SILENCE_MS, sleep } from "./reconnect.ts";
import { readToken } from "./router.ts";
import { applySnapshot, applyUpdate, EMPTY_STATE, type PageState } from "./store.ts";
import { onLongHidden, onWake, untilShown } from "./tab-visibility.ts";
import type { ActionResult, ApplyResult, CompareResult, SessionState, Snapshot, Update } from "./wire.ts";
import { withConnection } from "./with-connection.ts";

/**
 * Follows the stream and calls `onState` at most once per animation frame.
 * @param first what is shown already
 * @returns a function that ends it
 */
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
      const onWait = () => set({ ...state, connection: "crowded", heardAtMs });
      let isExpired = false;
      await withConnection(connection, onWait, async () => {
        isExpired = await readStream(connection, onEvent, answerWithinMs(failures));
      });
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

const EVENTS = ["build", "snapshot", "update", "ping"] as const;
type StreamEvent = (typeof EVENTS)[number];

/**
 * Reads one stream to its end.
 * @returns true when the session has expired; false when the connection broke, was silent for too long, or the signal aborted
 */
const readStream = (
  signal: AbortSignal,
  onEvent: (type: StreamEvent, data: string) => void,
  firstMs: number,
): Promise<boolean> =>
  new Promise((resolve) => {
    const source = new EventSource("/page/stream");
    let silence: ReturnType<typeof setTimeout> | undefined;
    const end = (isExpired: boolean) => {
      source.close();
      clearTimeout(silence);
      signal.removeEventListener("abort", onLoss);
      resolve(isExpired);
    };
    const onLoss = () => end(false);
    const expect = (withinMs: number) => {
      clearTimeout(silence);
      silence = setTimeout(onLoss, withinMs);
    };
    for (const type of EVENTS) {
      source.addEventListener(type, ({ data }) => {
        expect(SILENCE_MS);
        onEvent(type, data as string);
      });
    }
    source.addEventListener("expired", () => end(true));
    source.onerror = onLoss;
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
    if (!response.ok) return (await response.text()).trim().slice(0, 300);
    const { openPages, mostPages } = (await response.json()) as SessionState;
    return openPages >= mostPages ? `it sends updates to ${mostPages} pages at most` : "";
  } catch {
    return "";
  }
}

/** An answer other than 2xx. */
export class RequestFailed extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** @throws RequestFailed */
export async function fetchJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, { ...(signal && { signal }), headers: { Accept: "application/json" } });
  if (!response.ok) throw new RequestFailed(response.status, (await response.text()).slice(0, 500));
  return (await response.json()) as T;
}

/** Never rejects. @param failed makes a response of the reason why there is none */
export async function post<T>(path: string, body: unknown, failed: (message: string) => T): Promise<T> {
  try {
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (response.ok) return (await response.json()) as T;
    return failed((await response.text()).slice(0, 2000) || `HTTP ${response.status}`);
  } catch {
    return failed("The kubelet does not answer.");
  }
}

/** Never rejects. */
export const act = (path: string, body: unknown = {}): Promise<ActionResult> =>
  post<ActionResult>(path, body, (message) => ({ ok: false, message }));

/** Never rejects. */
export const applyManifest = (manifest: string, dryRun: boolean): Promise<ApplyResult> =>
  post<ApplyResult>("/page/api/apply", { manifest, dryRun }, (message) => ({ objects: [], problems: [message] }));

/** Never rejects. */
export const compareManifest = (manifest: string): Promise<CompareResult> =>
  post<CompareResult>("/page/api/compare", { manifest }, (message) => ({
    changes: [],
    leftOut: 0,
    problems: [message],
  }));

/** Exchanges the one-time token of the address (`#token=…`) for a session, and removes it from the address. */
export async function logInFromAddress(): Promise<string | undefined> {
  const token = readToken(location.hash);
  if (token === undefined) return undefined;
  history.replaceState(null, "", "#/");
  const { ok, message } = await act("/page/login", { token });
  return ok ? undefined : message;
}
