import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { followState, logInFromAddress, readFirstState, reloadFor, untilShown } from "./connection.ts";
import { formatTime, toMs } from "./format.ts";
import { ApplyView } from "./manifests.tsx";
import { NodeView } from "./node-view.tsx";
import { Overview } from "./overview.tsx";
import { Button, ClusterFailure, Plain, timeOf, titleTimesOnHover } from "./parts.tsx";
import { PodView } from "./pod-view.tsx";
import { mayReload, parseView, readToken, type View } from "./router.ts";
import type { PageState } from "./store.ts";
import type { NodeState } from "./wire.ts";

/** Longer than the time between two updates. */
const CLOCK_MS = 12_000;

const nowOf = ({ clockOffsetMs }: PageState): number => Date.now() + clockOffsetMs;

/** Outages and the end of the session. Times are absolute: a text that changes is read out again. */
function Notices({ state, loginError }: { state: PageState; loginError: string | undefined }) {
  const { connection, refusal, newBuild, node, heardAtMs, hasExpired, privileged } = state;
  const isLive = connection === "live";
  return (
    <div class="notices" role="status" aria-live="polite">
      {connection === "lost" && (
        <p class="banner bad">
          {refusal === "" ? (
            "The kubelet does not answer."
          ) : (
            <>
              The kubelet refuses this page: <bdi>{refusal}</bdi>.
            </>
          )}{" "}
          What is shown is {heardAtMs === 0 ? "old" : "as of "}
          {timeOf(heardAtMs, formatTime(heardAtMs))}; trying again.
        </p>
      )}
      {newBuild !== "" && (
        <p class="banner warn">
          The kubelet was replaced by another version, which has another page.{" "}
          <Button text="Load it" onClick={() => location.reload()} />
        </p>
      )}
      {isLive && node && node.problem !== "" && (
        <p class="banner warn" tabIndex={0}>
          The kubelet reports{notReadySince(node) > 0 && " since "}
          {timeOf(notReadySince(node), formatTime(notReadySince(node)))}: <Plain text={node.problem} />
          {node.isEngineAway &&
            `${/[.?]$/.test(node.problem) ? "" : "."} Containers keep running; their usage is measured, and probes that need no engine (httpGet, tcpSocket, grpc) are made. Starts, restarts, logs and shells wait until the engine answers.`}
        </p>
      )}
      {isLive && node?.cluster?.failure && (
        <p class="banner warn" tabIndex={0}>
          <ClusterFailure cluster={node.cluster} />
        </p>
      )}
      {isLive && hasExpired && (
        <p class="banner warn">
          Your session has ended: for logs, shell and actions, run <code>kubelet-ts page</code> on the machine and open
          the link that it prints.
        </p>
      )}
      {loginError && !privileged && <p class="banner warn">{loginError}</p>}
    </div>
  );
}

/** 0 while the node is Ready. */
const notReadySince = ({ conditions }: NodeState): number =>
  toMs(conditions.find(({ type, status }) => type === "Ready" && status !== "True")?.lastTransitionTime);

function App({ first, loginError }: { first: PageState; loginError: string | undefined }) {
  const [state, setState] = useState(first);
  const [{ view, scroll, visit }, setPlace] = useState(() => ({ view: parseView(location.hash), scroll: 0, visit: 0 }));
  const [now, setNow] = useState(() => nowOf(first));
  const show = (next: PageState) => {
    setNow(nowOf(next));
    setState(next);
  };
  useEffect(() => followState(first, show), []);
  // Updates move the clock; without one a timer does, so that there is one render in each period.
  useEffect(() => {
    const gone = new AbortController();
    const tick = () => {
      if (!gone.signal.aborted) setNow(nowOf(state));
    };
    // Views load again as the clock moves: not in a hidden tab.
    const clock = setTimeout(() => void untilShown(gone.signal).then(tick), CLOCK_MS);
    return () => {
      clearTimeout(clock);
      gone.abort();
    };
  }, [now]);
  useEffect(() => {
    history.scrollRestoration = "manual";
    // Where a view was left, so that "back" leads there.
    const onClick = () => history.replaceState({ scroll: scrollY }, "");
    const onHash = () => {
      // A link of `kubelet-ts page`, opened in the tab that shows the page already.
      if (readToken(location.hash) !== undefined) location.reload();
      else setPlace((old) => ({ view: parseView(location.hash), scroll: savedScroll(), visit: old.visit + 1 }));
    };
    const gone = new AbortController();
    addEventListener("click", onClick, { capture: true, signal: gone.signal });
    addEventListener("hashchange", onHash, { signal: gone.signal });
    return () => gone.abort();
  }, []);
  useEffect(() => {
    if (visit === 0) return;
    // Keyboard users start at the top of the new view.
    document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true });
    scrollTo(0, scroll);
  }, [visit]);
  useEffect(() => {
    if (state.newBuild !== "" && mayReload(view)) reloadFor(state.newBuild);
  }, [state.newBuild, view]);
  const nodeName = state.node?.name ?? "kubelet-ts";
  useEffect(() => {
    document.title = `${titleOf(view)} – ${nodeName}`;
  }, [view, nodeName]);
  return (
    <>
      <header>
        <Button text="Skip to the content" class="skip" onClick={() => document.querySelector("main")?.focus()} />
        <a class="brand" href="#/">
          {nodeName}
        </a>
        <nav aria-label="Views">
          {VIEWS.filter(({ kind }) => kind !== "apply" || state.canAct).map(({ kind, address, title }) => (
            <a
              key={kind}
              href={address}
              aria-current={
                view.kind === kind ? "page" : view.kind === "pod" && kind === "overview" ? "true" : undefined
              }
            >
              {title}
            </a>
          ))}
        </nav>
      </header>
      <main tabIndex={-1}>
        {state.connection === "locked" ? (
          <div class="empty">
            <h1>This page needs a session</h1>
            <p>
              Run <code>kubelet-ts page</code> on the machine and open the link that it prints.
            </p>
          </div>
        ) : (
          <CurrentView state={state} view={view} visit={visit} now={now} />
        )}
      </main>
      <footer>
        <div>{state.node && `${state.node.version}, ${state.node.engine}`}</div>
        {!state.privileged && state.connection === "live" && (
          <div>
            {state.node?.cluster ? "Logs and shell" : "Logs, shell and actions"} need a session: run{" "}
            <code>kubelet-ts page</code> on the machine and open the link that it prints.
          </div>
        )}
        {state.privileged && state.node?.cluster && (
          <div>This node belongs to a cluster: its pods are changed with kubectl.</div>
        )}
      </footer>
      <Notices state={state} loginError={visit === 0 ? loginError : undefined} />
    </>
  );
}

function CurrentView({ state, view, visit, now }: { state: PageState; view: View; visit: number; now: number }) {
  switch (view.kind) {
    case "overview":
      return <Overview state={state} now={now} first={view.filter} key={visit} />;
    case "node":
      return <NodeView state={state} now={now} />;
    case "apply":
      return <ApplyView canAct={state.canAct} isOfCluster={Boolean(state.node?.cluster)} />;
    default:
      return <PodView state={state} view={view} now={now} />;
  }
}

/** How far the reader had scrolled in this entry of the browser's history. */
const savedScroll = (): number => (history.state as { scroll?: number } | null)?.scroll ?? 0;

function titleOf(view: View): string {
  if (view.kind === "pod") return view.tab === "overview" ? view.name : `${view.name} ${view.tab}`;
  return VIEWS.find(({ kind }) => kind === view.kind)?.title ?? "";
}

const VIEWS = [
  { kind: "overview", address: "#/", title: "Pods" },
  { kind: "node", address: "#/node", title: "Node" },
  { kind: "apply", address: "#/apply", title: "Apply" },
] as const;

titleTimesOnHover();
const loginError = await logInFromAddress();
const root = document.getElementById("app");
if (root) render(<App first={readFirstState()} loginError={loginError} />, root);
