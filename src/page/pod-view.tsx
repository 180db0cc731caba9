import { useRef, useState } from "preact/hooks";
import { act, fetchJson, useLoaded } from "./connection.ts";
import { describeAction, type PodAction } from "./describe-action.ts";
import { LogView } from "./log-view.tsx";
import { ManifestTab } from "./manifests.tsx";
import { Badge, Button, NeedsSession, PodLink, Question, statusTone } from "./parts.tsx";
import { PodOverview } from "./pod-overview.tsx";
import type { PodRow } from "./pod-row.ts";
import { POD_TABS, type PodName, type PodTab, podAddress } from "./router.ts";
import { ShellView } from "./shell-view.tsx";
import { mayMissPods, type PageState, shownPod } from "./store.ts";
import { EventTable, ProcessTab } from "./tables.tsx";
import type { ActionResult, PodDetail } from "./wire.ts";

const TAB_TITLES: Readonly<Record<PodTab, string>> = {
  overview: "Overview",
  logs: "Logs",
  shell: "Shell",
  processes: "Processes",
  events: "Events",
  manifest: "Manifest",
};
const PRIVILEGED_TABS: ReadonlySet<PodTab> = new Set(["logs", "shell", "processes"]);
const REFRESH_MS = 5000;

interface PodPlace extends PodName {
  tab: PodTab;
}

/** The pod of a name: when it is replaced, its successor. */
export function PodView({ state, view, now }: { state: PageState; view: PodPlace; now: number }) {
  const last = useRef<PodRow>(undefined);
  const found = shownPod(state, view, last.current);
  last.current = found ?? last.current;
  if (found) return <OnePod key={found.uid} state={state} row={found} view={view} now={now} />;
  if (state.connection !== "live") return <p class="empty">Loading…</p>;
  return <GonePod state={state} view={view} last={last.current} />;
}

/** A pod that was removed, or never was here. A successor of the same name is shown when it comes. */
function GonePod({ state, view, last }: { state: PageState; view: PodPlace; last: PodRow | undefined }) {
  const { namespace, name } = view;
  const wasHere = last?.namespace === namespace && last.name === name;
  const owner = wasHere ? last.owner : "";
  const others = [...state.pods.values()].filter((pod) => owner !== "" && pod.owner === owner);
  return (
    <section class="card">
      <h1>
        <bdi>{name}</bdi> <span class="namespace">{namespace}</span>
      </h1>
      <p>{describeAbsence(mayMissPods(state), wasHere)}</p>
      {others.length > 0 && (
        <>
          <p>
            Pods of <bdi>{owner}</bdi>:
          </p>
          <ul class="plain">
            {others.map((pod) => (
              <li key={pod.uid}>
                <PodLink pod={pod} tab={view.tab} />
              </li>
            ))}
          </ul>
        </>
      )}
      <a href="#/">All pods</a>
    </section>
  );
}

function describeAbsence(mayBeLate: boolean, wasHere: boolean): string {
  if (mayBeLate) return "This pod is not known yet: not every source of pods has been read.";
  return wasHere ? "This pod was removed from the node." : "There is no such pod on this node.";
}

function OnePod({ state, row, view, now }: { state: PageState; row: PodRow; view: PodPlace; now: number }) {
  const { uid, name } = row;
  const { tab } = view;
  const path = `/page/api/pods/${encodeURIComponent(uid)}`;
  // Loaded again when the pod changes, and every few seconds for its usage.
  const { value: detail, error } = useLoaded(
    uid,
    `${JSON.stringify(row)} ${state.connects} ${Math.floor(now / REFRESH_MS)}`,
    (signal) => fetchJson<PodDetail>(path, signal),
  );
  const [question, setQuestion] = useState<PodAction>();
  const [busy, setBusy] = useState<PodAction>();
  const [result, setResult] = useState<ActionResult>();
  const onResponse = async (yes: boolean) => {
    const action = question;
    setQuestion(undefined);
    if (!yes || !action) return;
    setBusy(action);
    setResult(undefined);
    setResult(await act(`${path}/${action}`));
    setBusy(undefined);
  };
  // Its shell continues while another part of the pod is shown.
  const [hasShell, setHasShell] = useState(false);
  if (tab === "shell" && !hasShell) setHasShell(true);
  const isLocked = !state.privileged && PRIVILEGED_TABS.has(tab);
  const tabs = state.privileged ? POD_TABS : POD_TABS.filter((known) => !PRIVILEGED_TABS.has(known));
  return (
    <>
      <div class="title">
        <h1>
          <bdi>{name}</bdi> <span class="namespace">{row.namespace}</span>
        </h1>
        <Badge tone={statusTone(row.status, row.isReady)}>{row.status}</Badge>
        {state.canAct && (
          <span class="buttons">
            <Button text="Restart" disabled={busy !== undefined} onClick={() => setQuestion("restart")} />
            <Button text="Delete" class="danger" disabled={busy !== undefined} onClick={() => setQuestion("delete")} />
          </span>
        )}
      </div>
      <div role="status">
        {busy && <p class="banner">{busy === "restart" ? "Restarting…" : "Deleting…"}</p>}
        {result && <p class={result.ok ? "banner" : "banner bad"}>{result.message}</p>}
        {error && <p class="banner warn">{error}</p>}
      </div>
      {question && <Question {...describeAction(question, row)} onResponse={onResponse} />}
      <nav class="tabs" aria-label="Parts of the pod">
        {tabs.map((known) => (
          <a key={known} href={podAddress(row, known)} aria-current={known === tab ? "page" : undefined}>
            {TAB_TITLES[known]}
          </a>
        ))}
      </nav>
      {isLocked && state.connection === "live" && <NeedsSession what="This part" />}
      {!isLocked && !detail && !error && <p class="empty">Loading…</p>}
      {hasShell && state.privileged && detail && (
        <div hidden={tab !== "shell"}>
          <ShellView pod={row} containers={detail.containers} isShown={tab === "shell"} />
        </div>
      )}
      {!isLocked && detail && <PodPart state={state} detail={detail} tab={tab} path={path} now={now} />}
    </>
  );
}

function PodPart(props: { state: PageState; detail: PodDetail; tab: PodTab; path: string; now: number }) {
  const { state, detail, tab, path, now } = props;
  const { canAct, connects } = state;
  const { row, containers, events } = detail;
  switch (tab) {
    case "logs":
      return <LogView path={path} pod={row.name} containers={containers} connects={connects} />;
    case "shell":
      return null;
    case "processes":
      return <ProcessTab path={path} now={now} />;
    case "manifest":
      return <ManifestTab detail={detail} canAct={canAct} />;
    case "events":
      return (
        <section class="card">
          <EventTable events={events} now={now} />
        </section>
      );
    default:
      return <PodOverview detail={detail} path={path} now={now} />;
  }
}
