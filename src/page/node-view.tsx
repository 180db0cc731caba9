import { HistoryCharts } from "./chart.tsx";
import { fetchJson, useLoaded } from "./connection.ts";
import { formatBytes, formatCores, formatShare } from "./format.ts";
import { conditionTone, NodeTiles } from "./node-tiles.tsx";
import { Age, Ago, Card, ClusterFailure, Fact, Meter, Plain, PodLink, Table, useRows } from "./parts.tsx";
import type { PodName } from "./router.ts";
import type { PageState } from "./store.ts";
import { ConditionTable, EventTable } from "./tables.tsx";
import type {
  CgroupRow,
  CoreUse,
  ImageRow,
  InterfaceRow,
  MachineMemory,
  NodeDetail,
  OtherContainerRow,
} from "./wire.ts";

const REFRESH_MS = 20_000;

export function NodeView({ state, now }: { state: PageState; now: number }) {
  // Again after a break, too: the engine or the kubelet may be another one.
  const revision = `${Math.floor(now / REFRESH_MS)} ${state.connects} ${state.node?.problem} ${state.node?.engine}`;
  const { value: detail, error } = useLoaded("node", revision, (signal) =>
    fetchJson<NodeDetail>("/page/api/node", signal),
  );
  return (
    <>
      <h1>Node {state.node?.name}</h1>
      <NodeTiles state={state} now={now} />
      <HistoryCharts path="/page/api/node/history" now={now} memoryLimitBytes={state.node?.memoryBytes ?? 0} />
      {error && <p class="banner warn">{error}</p>}
      {state.node?.cluster && (
        <Card title="Cluster">
          <Facts facts={{ "API server": state.node.cluster.server }} />
          <p class="note">
            {state.node.cluster.failure ? (
              <ClusterFailure cluster={state.node.cluster} />
            ) : (
              "It answers: pods come from there, and their statuses are reported to it."
            )}
          </p>
        </Card>
      )}
      <ConditionTable conditions={state.node?.conditions ?? []} toneOf={conditionTone} now={now} />
      {!detail && !error && state.connection === "live" && <p class="empty">Loading…</p>}
      {detail && (
        <>
          <CoreMeters cores={detail.cores} />
          <Card title="Memory">
            <Facts facts={describeMemory(detail.memory)} />
          </Card>
          <Card title="File systems">
            {detail.filesystems.length === 0 && <p class="note">Not measured at the moment.</p>}
            {detail.filesystems.map(({ device, mountPoint, use, capacityBytes, usedBytes }) => (
              <Meter
                key={mountPoint}
                used={usedBytes}
                total={capacityBytes}
                text={`${mountPoint}${device === mountPoint ? "" : ` (${device})`}: ${formatShare(usedBytes, capacityBytes)}${use === "" ? "" : `, ${use}`}`}
              />
            ))}
          </Card>
          <InterfaceTable interfaces={detail.interfaces} />
          <OtherContainerTable containers={detail.otherContainers} now={now} />
          <CgroupTable cgroups={detail.cgroups} privileged={state.privileged} />
          <ImageTable images={detail.images} gcPercent={detail.imageGcPercent} now={now} />
          <Card title="Engine">
            <Facts facts={detail.engine} />
          </Card>
          <Card title="Machine">
            <Facts facts={detail.machine} />
            <p class="note">
              For programs: <a href="/api/v1.3/machine">machine</a>,{" "}
              <a href="/api/v1.3/subcontainers/">control groups</a>, <a href="/metrics">metrics</a>,{" "}
              <a href="/index.html">all of cAdvisor's API</a>
            </p>
          </Card>
          <Card title="Events">
            <EventTable events={detail.events} now={now} withObject />
          </Card>
        </>
      )}
    </>
  );
}

const Facts = ({ facts }: { facts: Record<string, string> }) => {
  const entries = Object.entries(facts);
  if (entries.length === 0) return <p class="empty">Not known yet.</p>;
  return (
    <dl>
      {entries.map(([name, value]) => (
        <Fact key={name} name={name} value={value} />
      ))}
    </dl>
  );
};

const whole = (percent: number) => `${Math.round(percent)} %`;
const busy = ({ user, system, stolen }: CoreUse) => user + system + stolen;

/** Waits and stolen time are named where there are some. */
function describeUse({ user, system, wait, stolen }: CoreUse): string {
  const parts = [`programs ${whole(user)}`, `kernel ${whole(system)}`];
  if (wait >= 0.5) parts.push(`waits for disks ${whole(wait)}`);
  if (stolen >= 0.5) parts.push(`taken by the host ${whole(stolen)}`);
  return parts.join(", ");
}

function CoreMeters({ cores }: { cores: readonly CoreUse[] }) {
  const { shown, button } = useRows(cores);
  if (cores.length === 0) return null;
  const mean = (kind: keyof CoreUse) => cores.reduce((sum, core) => sum + core[kind], 0) / cores.length;
  const all = { user: mean("user"), system: mean("system"), wait: mean("wait"), stolen: mean("stolen") };
  return (
    <Card title="CPU cores">
      <p class="note">All: {describeUse(all)}</p>
      <div class="pair">
        {shown.map((core, index) => (
          <Meter key={index} used={busy(core)} total={100} text={`core ${index}: ${describeUse(core)}`} />
        ))}
      </div>
      {button}
    </Card>
  );
}

const describeMemory = (memory: MachineMemory): Record<string, string> => ({
  Available: `${formatBytes(memory.availableBytes)} of ${formatBytes(memory.totalBytes)}`,
  "Cache of files": formatBytes(memory.cachedBytes),
  Swap: memory.swapBytes === 0 ? "none" : formatShare(memory.swapUsedBytes, memory.swapBytes),
});

function InterfaceTable({ interfaces }: { interfaces: readonly InterfaceRow[] }) {
  if (interfaces.length === 0) return null;
  return (
    <section class="card" tabIndex={0} aria-label="Network interfaces">
      <h2>Network interfaces</h2>
      <Table
        rows={interfaces}
        isLong
        keyOf={({ name }) => name}
        columns={[
          { title: "Interface", cell: ({ name }) => <bdi>{name}</bdi> },
          { title: "Received", class: "number", cell: ({ receivedBytes }) => formatBytes(receivedBytes) },
          { title: "Sent", class: "number", cell: ({ sentBytes }) => formatBytes(sentBytes) },
          { title: "Errors", class: "number", cell: ({ errors }) => errors },
          { title: "Dropped", class: "number", cell: ({ dropped }) => dropped },
        ]}
      />
    </section>
  );
}

/** Containers of the engine that are not of this kubelet. */
function OtherContainerTable({ containers, now }: { containers: readonly OtherContainerRow[]; now: number }) {
  if (containers.length === 0) return null;
  return (
    <Card title="Other containers of the engine">
      <Table
        class="stacked"
        rows={containers}
        isLong
        keyOf={({ name }) => name}
        columns={[
          { title: "Container", isHeading: true, cell: ({ name }) => <bdi>{name}</bdi> },
          {
            title: "Image",
            class: "source",
            hover: ({ image }) => image,
            cell: ({ image }) => <bdi>{shortId(image)}</bdi>,
          },
          { title: "Age", class: "fixed", cell: ({ startedAt }) => <Age at={startedAt} now={now} /> },
          { title: "CPU cores", class: "number", label: "CPU cores", cell: (it) => formatCores(it.cpuCores) },
          { title: "Memory", class: "number", label: "Memory", cell: (it) => formatBytes(it.memoryBytes) },
        ]}
      />
    </Card>
  );
}

/** The cgroup tree by use; rows of pods lead to their processes. */
const CgroupTable = ({ cgroups, privileged }: { cgroups: readonly CgroupRow[]; privileged: boolean }) => (
  <Card title="Control groups by memory">
    <Table
      rows={cgroups}
      isLong
      keyOf={({ path }) => path}
      columns={[
        {
          title: "Group",
          class: ({ depth }) => `depth depth-${Math.min(depth, 5)}`,
          hover: ({ path }) => path,
          cell: ({ pod, name }) =>
            pod ? <PodLink pod={pod} tab={privileged ? "processes" : "overview"} text={name} /> : <Plain text={name} />,
        },
        { title: "CPU cores", class: "number", cell: ({ cpuCores }) => formatCores(cpuCores) },
        { title: "Memory", class: "number", cell: ({ memoryBytes }) => formatBytes(memoryBytes) },
        { title: "Tasks", class: "number", cell: ({ tasks }) => tasks ?? "-" },
      ]}
    />
  </Card>
);

const SHOWN_PODS = 3;

/** An id of an image as `docker images` prints it; names stay. */
const shortId = (image: string): string => image.replace(/^(sha256:[0-9a-f]{12})[0-9a-f]+$/, "$1");

function ImageTable({ images, gcPercent, now }: { images: readonly ImageRow[]; gcPercent: number; now: number }) {
  const removable = images.filter(({ isRemovable }) => isRemovable);
  const removableBytes = removable.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  return (
    <Card title="Images">
      <p class="note">
        {images.length === 0 ? "Not known yet." : `${images.length} ${images.length === 1 ? "image" : "images"}. `}
        {removable.length > 0 &&
          `${removable.length} of them (${formatBytes(removableBytes)}) may be removed by the kubelet when their disk is ${gcPercent} % full.`}
      </p>
      <Table
        class="stacked"
        rows={images}
        isLong
        keyOf={({ id }) => id}
        columns={[
          {
            title: "Image",
            class: "source",
            hover: ({ id, names }) => [id, ...names].join("\n"),
            cell: ({ id, names }) => <bdi>{names.at(-1) ?? shortId(id)}</bdi>,
          },
          {
            title: "Used by",
            class: "message",
            cell: ({ usedBy, isRemovable }) => (
              <>
                {usedBy.length > 0 && (
                  <ul class="plain">
                    {usedBy.slice(0, SHOWN_PODS).map((pod) => (
                      <li key={pod}>
                        <PodLink pod={splitName(pod)} text={pod} />
                      </li>
                    ))}
                  </ul>
                )}
                {usedBy.length > SHOWN_PODS && `and ${usedBy.length - SHOWN_PODS} more`}
                {isRemovable && "removable"}
              </>
            ),
          },
          {
            title: "Last use by a pod",
            cell: ({ usedBy, lastUse }) =>
              usedBy.length > 0 ? "in use" : lastUse > 0 ? <Ago at={lastUse} now={now} /> : "unknown",
          },
          { title: "Age", cell: ({ createdAt: at }) => (at > 0 ? <>built {<Ago at={at} now={now} />}</> : "-") },
          { title: "Size", class: "number", cell: ({ sizeBytes }) => formatBytes(sizeBytes) },
        ]}
      />
    </Card>
  );
}

function splitName(pod: string): PodName {
  const [namespace = "", name = ""] = pod.split("/");
  return { namespace, name };
}
