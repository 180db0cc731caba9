import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApplyView } from "./apply-view.tsx";
import { followState, logInFromAddress } from "./connection.ts";
import { NodeView } from "./node-view.tsx";
import { Overview } from "./overview.tsx";
import { PodView } from "./pod-view.tsx";
import { parseView, type View } from "./router.ts";
import { EMPTY_STATE, type PageState } from "./store.ts";

/** Longer than the time between two updates. */
const CLOCK_MS = 12_000;

function App({ loginError }: { loginError: string | undefined }) {
  const [state, setState] = useState<PageState>(EMPTY_STATE);
  const [view, setView] = useState(() => parseView(location.hash));
  const [nowMs, setNowMs] = useState(Date.now());
  useEffect(
    () =>
      followState((next) => {
        setState(next);
        setNowMs(Date.now());
      }),
    [],
  );
  // Updates move the clock; without one a timer does, so that there is one render in each period.
  useEffect(() => {
    const clock = setTimeout(() => setNowMs(Date.now()), CLOCK_MS);
    return () => clearTimeout(clock);
  }, [nowMs]);
  useEffect(() => {
    const onHash = () => {
      setView(parseView(location.hash));
      // Keyboard users start at the top of the new view.
      document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true });
      scrollTo(0, 0);
    };
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  const now = nowMs + state.clockOffsetMs;
  const problem = state.node?.problem;
  return (
    <>
      <header>
        <a class="brand" href="#/">
          {state.node?.name ?? "kubelet-ts"}
        </a>
        <nav aria-label="Views">
          <a href="#/" aria-current={view.kind === "overview" ? "page" : undefined}>
            Pods
          </a>
          <a href="#/node" aria-current={view.kind === "node" ? "page" : undefined}>
            Node
          </a>
          {state.canAct && (
            <a href="#/apply" aria-current={view.kind === "apply" ? "page" : undefined}>
              Apply
            </a>
          )}
        </nav>
      </header>
      <div role="status" aria-live="polite">
        {state.connection === "lost" && (
          <p class="banner bad">The kubelet does not answer. What is shown is old; trying again.</p>
        )}
        {state.connection === "live" && problem && <p class="banner warn">The kubelet reports: {problem}</p>}
        {loginError && <p class="banner warn">{loginError}</p>}
      </div>
      <main tabIndex={-1}>
        {state.connection === "locked" ? <Locked /> : <CurrentView state={state} view={view} now={now} />}
      </main>
      <footer>
        {state.node && `${state.node.version}, ${state.node.engine}`}
        {!state.privileged && state.connection === "live" && (
          <>
            {" "}
            Logs, shell and actions need a session: run <code>kubelet-ts page</code> on the machine.
          </>
        )}
      </footer>
    </>
  );
}

function CurrentView({ state, view, now }: { state: PageState; view: View; now: number }) {
  return (
    <>
      {view.kind === "overview" && <Overview state={state} now={now} />}
      {view.kind === "node" && <NodeView state={state} now={now} />}
      {view.kind === "apply" && <ApplyView canAct={state.canAct} />}
      {view.kind === "pod" && <PodView key={view.uid} state={state} uid={view.uid} tab={view.tab} now={now} />}
    </>
  );
}

const Locked = () => (
  <p class="empty">
    This page needs a session: run <code>kubelet-ts page</code> on the machine and open the link that it prints.
  </p>
);

const loginError = await logInFromAddress();
const root = document.getElementById("app");
if (root) render(<App loginError={loginError} />, root);
