import { useRef, useState } from "preact/hooks";
import { act, fetchJson } from "./connection.ts";
import { EventTable } from "./event-table.tsx";
import { formatBytes, formatCores, formatPercent, formatTime } from "./format.ts";
import { HistoryCharts } from "./history-charts.tsx";
import { LogView } from "./log-view.tsx";
import { ManifestTab } from "./manifest-tab.tsx";
import { Age, Badge, Meter, Question, statusTone, TableHead, useLoaded } from "./parts.tsx";
import { ProcessTab } from "./process-tab.tsx";
import { POD_TABS, type PodTab, podAddress } from "./router.ts";
import { ShellView } from "./shell-view.tsx";
import { findPod, type PageState } from "./store.ts";
import type { ContainerDetail, ImageUpdateRow, PodDetail, PodRow, ProbeHistory } from "./wire.ts";

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

interface PodPlace {
  namespace: string;
  name: string;
  tab: PodTab;
}

/** The pod of a name: when it is replaced, its successor. */
export function PodView({ state, view, now }: { state: PageState; view: PodPlace; now: number }) {
  const { namespace, name } = view;
  const found = findPod(state.pods, namespace, name);
  const last = useRef(found);
  last.current = found ?? last.current;
  if (found) return <OnePod key={found.uid} state={state} row={found} view={view} now={now} />;
  if (state.connection !== "live") return <p class="empty">Loading…</p>;
  return <GonePod state={state} view={view} last={last.current} />;
}

/** A pod that was removed, or never was here. A successor of the same name is shown when it comes. */
function GonePod({ state, view, last }: { state: PageState; view: PodPlace; last: PodRow | undefined }) {
  const { namespace, name } = view;
  const owner = last?.namespace === namespace && last.name === name ? last.owner : "";
  const others = [...state.pods.values()].filter((pod) => owner !== "" && pod.owner === owner);
  return (
    <section class="card">
      <h1>
        <bdi>{name}</bdi> <span class="namespace">{namespace}</span>
      </h1>
      <p>{last ? "This pod was removed from the node." : "There is no such pod on this node."}</p>
      {others.length > 0 && (
        <>
          <p>
            Pods of <bdi>{owner}</bdi>:
          </p>
          <ul class="plain">
            {others.map((pod) => (
              <li key={pod.uid}>
                <a href={podAddress(pod, view.tab)}>
                  <bdi>{pod.name}</bdi>
                </a>
              </li>
            ))}
          </ul>
        </>
      )}
      <a href="#/">All pods</a>
    </section>
  );
}

function OnePod({ state, row, view, now }: { state: PageState; row: PodRow; view: PodPlace; now: number }) {
  const { uid, name } = row;
  const { tab } = view;
  const path = `/page/api/pods/${encodeURIComponent(uid)}`;
  // Loaded again when the pod changes, and every few seconds for its usage.
  const { value: detail, error } = useLoaded(uid, `${JSON.stringify(row)} ${Math.floor(now / REFRESH_MS)}`, (signal) =>
    fetchJson<PodDetail>(path, signal),
  );
  const [question, setQuestion] = useState<"restart" | "delete">();
  const [answer, setAnswer] = useState("");
  const onAnswer = async (yes: boolean) => {
    const action = question;
    setQuestion(undefined);
    if (yes && action) setAnswer((await act(`${path}/${action}`)).message);
  };
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
            <button type="button" onClick={() => setQuestion("restart")}>
              Restart
            </button>
            <button type="button" class="danger" onClick={() => setQuestion("delete")}>
              Delete
            </button>
          </span>
        )}
      </div>
      <div role="status">
        {answer && <p class="banner">{answer}</p>}
        {error && <p class="banner warn">{error}</p>}
      </div>
      {question && (
        <Question
          action={question === "restart" ? "Restart" : "Delete"}
          text={
            question === "restart"
              ? `Restart all containers of ${name}? It does not serve meanwhile.`
              : `Delete ${name}? Its containers are stopped and its emptyDir volumes are lost.`
          }
          onAnswer={onAnswer}
        />
      )}
      <nav class="tabs" aria-label="Parts of the pod">
        {tabs.map((known) => (
          <a key={known} href={podAddress(row, known)} aria-current={known === tab ? "page" : undefined}>
            {TAB_TITLES[known]}
          </a>
        ))}
      </nav>
      {isLocked && state.connection === "live" && (
        <p class="empty">
          This part needs a session: run <code>kubelet-ts page</code> on the machine and open the link that it prints.
        </p>
      )}
      {!isLocked && !detail && !error && <p class="empty">Loading…</p>}
      {!isLocked && detail && <PodPart detail={detail} tab={tab} canAct={state.canAct} path={path} now={now} />}
    </>
  );
}

function PodPart({
  detail,
  tab,
  canAct,
  path,
  now,
}: {
  detail: PodDetail;
  tab: PodTab;
  canAct: boolean;
  path: string;
  now: number;
}) {
  const { row, containers, events } = detail;
  switch (tab) {
    case "logs":
      return <LogView path={path} pod={row.name} containers={containers} />;
    case "shell":
      return <ShellView uid={row.uid} containers={containers} />;
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

function PodOverview({ detail, path, now }: { detail: PodDetail; path: string; now: number }) {
  const total = (key: "cpuLimitCores" | "memoryLimitBytes") => {
    const mains = detail.containers.filter(({ kind }) => kind === "main" || kind === "sidecar");
    return mains.every((container) => container[key] > 0)
      ? mains.reduce((sum, container) => sum + container[key], 0)
      : 0;
  };
  const warnings = detail.manifest.findings.length;
  return (
    <>
      {detail.explanation.length > 0 && (
        <section class="card warn" aria-label={detail.row.isReady ? "Restarts" : "Why this pod is not ready"}>
          <h2>{detail.row.isReady ? "Restarted a short time ago" : "Why it is not ready"}</h2>
          {detail.explanation.map(({ problem, facts, wayOut }) => (
            <div key={problem} class="explanation">
              <bdi>{problem}</bdi>
              {facts.map((fact) => (
                <div key={fact} class="note">
                  <bdi>{fact}</bdi>
                </div>
              ))}
              {wayOut !== "" && (
                <div>
                  → <bdi>{wayOut}</bdi>
                </div>
              )}
            </div>
          ))}
        </section>
      )}
      {warnings > 0 && (
        <p class="banner warn">
          {warnings === 1 ? "One line" : `${warnings} lines`} of the manifest: see{" "}
          <a href={podAddress(detail.row, "manifest")}>Manifest</a>.
        </p>
      )}
      {detail.row.notice !== "" && (
        <p class="banner warn">
          <bdi>{detail.row.notice}</bdi>
        </p>
      )}
      <section class="card facts">
        <dl>
          <Fact name="Source" value={detail.row.source} />
          {detail.row.owner !== "" && <Fact name="Owner" value={detail.row.owner} />}
          <Fact name="IP" value={detail.row.ip || "-"} />
          <Fact name="QoS class" value={detail.qosClass} />
          <Fact name="Started" value={formatTime(detail.startedAt) || "-"} />
        </dl>
        <Labels name="Labels" labels={detail.labels} />
        <Labels name="Annotations" labels={detail.annotations} />
      </section>
      {detail.imageUpdates.length > 0 && <ImageUpdates updates={detail.imageUpdates} now={now} />}
      <HistoryCharts
        path={`${path}/history`}
        now={now}
        cpuLimitCores={total("cpuLimitCores")}
        memoryLimitBytes={total("memoryLimitBytes")}
      />
      {detail.containers.map((container) => (
        <ContainerCard key={container.name} container={container} now={now} />
      ))}
      {detail.volumes.length > 0 && (
        <section class="card">
          <h2>Volumes</h2>
          {detail.volumes.map(({ name, type, usedBytes, capacityBytes }) => (
            <Meter
              key={name}
              used={usedBytes}
              total={capacityBytes}
              text={`${name} (${type})${capacityBytes > 0 ? `: ${formatBytes(usedBytes)} of ${formatBytes(capacityBytes)} (${formatPercent(usedBytes, capacityBytes)})` : ""}`}
            />
          ))}
        </section>
      )}
      <section class="card">
        <h2>Conditions</h2>
        <table class="stacked">
          <TableHead columns={["Type", "Status", "Since", "Message"]} />
          <tbody>
            {detail.conditions.map(({ type, status, since, reason, message }) => (
              <tr key={type}>
                <th scope="row">{type}</th>
                <td>{status}</td>
                <td>
                  <Age at={since} now={now} />
                </td>
                <td class="message">
                  <bdi>{[reason, message].filter((text) => text !== "").join(": ")}</bdi>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

/** `name=value`, shortened; whole on hover. */
const Labels = ({ name, labels }: { name: string; labels: Record<string, string> }) =>
  Object.keys(labels).length > 0 && (
    <ul class="labels" aria-label={name}>
      <li class="labels-name" aria-hidden="true">
        {name}
      </li>
      {Object.entries(labels).map(([key, value]) => (
        <li key={key} title={`${key}=${value}`}>
          <bdi>
            {key}={value}
          </bdi>
        </li>
      ))}
    </ul>
  );

function ImageUpdates({ updates, now }: { updates: readonly ImageUpdateRow[]; now: number }) {
  return (
    <section class="card">
      <h2>Image updates</h2>
      {updates.map(({ image, state, current, candidate, message, checkedAt }) => (
        <dl key={image}>
          <Fact name="Image" value={image} />
          <Fact name="State" value={message === "" ? state : `${state}: ${message}`} />
          <Fact name="Runs" value={current || "-"} />
          {candidate !== "" && <Fact name="Update" value={candidate} />}
          <div>
            <dt>Looked up</dt>
            <dd>{checkedAt > 0 ? <Ago at={checkedAt} now={now} /> : "never"}</dd>
          </div>
        </dl>
      ))}
    </section>
  );
}

/** Characters; a longer value has a line of its own. */
const LONG_FACT = 100;

const Fact = ({ name, value }: { name: string; value: string }) => (
  <div class={value.length > LONG_FACT ? "long" : undefined}>
    <dt>
      <bdi>{name}</bdi>
    </dt>
    <dd>
      <bdi>{value}</bdi>
    </dd>
  </div>
);

const Ago = ({ at, now }: { at: number; now: number }) => (
  <>
    <Age at={at} now={now} />
    {at > 0 && " ago"}
  </>
);

const KINDS = { init: "init container", sidecar: "sidecar", main: "", ephemeral: "ephemeral container" } as const;

function ContainerCard({ container, now }: { container: ContainerDetail; now: number }) {
  const { cpuCores, cpuLimitCores, memoryBytes, memoryLimitBytes } = container;
  const tone = container.ready
    ? "good"
    : container.isRunning
      ? "warn"
      : /Completed/.test(container.state)
        ? "idle"
        : "bad";
  return (
    <section class="card">
      <h2>
        <bdi>{container.name}</bdi> <span class="namespace">{KINDS[container.kind]}</span>{" "}
        <Badge tone={tone}>
          <bdi>{container.state}</bdi>
        </Badge>
      </h2>
      <dl class="facts">
        <Fact name="Image" value={container.image} />
        <Fact name="Digest" value={container.imageId || "-"} />
        <div>
          <dt>Started</dt>
          <dd>
            <Ago at={container.startedAt} now={now} />
          </dd>
        </div>
        <Fact name="Restarts" value={String(container.restarts)} />
        {container.lastEnd !== "" && <Fact name="Last end" value={container.lastEnd} />}
        {container.throttling && (
          <Fact
            name="CPU throttled"
            value={`${formatPercent(container.throttling.throttled, container.throttling.periods)} of the time (${container.throttling.throttled} of ${container.throttling.periods} periods)`}
          />
        )}
        {container.oomKills !== null && <Fact name="OOM kills" value={String(container.oomKills)} />}
        {container.ports.length > 0 && <Fact name="Ports" value={container.ports.join(", ")} />}
      </dl>
      {container.isRunning && (
        <div class="pair">
          <Meter
            used={cpuCores}
            total={cpuLimitCores}
            text={`CPU ${formatCores(cpuCores)}${cpuLimitCores > 0 ? ` of ${formatCores(cpuLimitCores)} (${formatPercent(cpuCores, cpuLimitCores)})` : ", no limit"}`}
          />
          <Meter
            used={memoryBytes}
            total={memoryLimitBytes}
            text={`Memory ${formatBytes(memoryBytes)}${memoryLimitBytes > 0 ? ` of ${formatBytes(memoryLimitBytes)} (${formatPercent(memoryBytes, memoryLimitBytes)})` : ", no limit"}`}
          />
        </div>
      )}
      {container.probes.map((probe) => (
        <Probe key={probe.kind} probe={probe} now={now} />
      ))}
    </section>
  );
}

function Probe({ probe, now }: { probe: ProbeHistory; now: number }) {
  const last = probe.answers.at(-1);
  return (
    <div class="probe">
      <span>
        {probe.kind} probe <code>{probe.target}</code>
      </span>
      <ol class="answers" aria-label={`Last answers of the ${probe.kind} probe, oldest first`}>
        {probe.answers.map((answer) => (
          <li
            key={answer.time}
            class={answer.result}
            title={`${formatTime(answer.time)}: ${answer.result}, ${Math.round(answer.durationMs)} ms. ${answer.output}`}
          >
            <span class="hidden">{answer.result}</span>
          </li>
        ))}
      </ol>
      {last && (
        <span class="note">
          {last.result} <Age at={last.time} now={now} /> ago
          {last.result !== "success" && last.output !== "" && `: ${last.output}`}
        </span>
      )}
    </div>
  );
}
