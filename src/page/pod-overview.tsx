import type { Probe } from "../base/api/pod.ts";
import { HistoryCharts } from "./chart.tsx";
import {
  describePort,
  describeTarget,
  describeTiming,
  formatBytes,
  formatCores,
  formatPercent,
  formatShare,
  formatWholeTime,
  toMs,
} from "./format.ts";
import { plainText } from "./log-text.ts";
import { startOf } from "./log-view.tsx";
import { Ago, At, Badge, Card, Explanations, Fact, Labels, Meter, Plain, statusTone } from "./parts.tsx";
import { podAddress } from "./router.ts";
import { ConditionTable, podConditionTone } from "./tables.tsx";
import type { ContainerDetail, ImageUpdateRow, ManifestView, PodDetail, ProbeAttempt, VolumeDetail } from "./wire.ts";

export function PodOverview({ detail, path, now }: { detail: PodDetail; path: string; now: number }) {
  const total = (key: "cpuLimitCores" | "memoryLimitBytes") => {
    const mains = detail.containers.filter(({ kind }) => kind === "main" || kind === "sidecar");
    return mains.every((container) => container[key] > 0)
      ? mains.reduce((sum, container) => sum + container[key], 0)
      : 0;
  };
  const { findings } = detail.manifest;
  const { qosClass = "", startTime, conditions = [] } = detail.status ?? {};
  return (
    <>
      {detail.explanation.length > 0 && (
        <section class="card warn" aria-label={detail.row.isReady ? "What is not well" : "Why this pod is not ready"}>
          <h2>{detail.row.isReady ? "Ready, but" : "Why it is not ready"}</h2>
          <Explanations all={detail.explanation} />
        </section>
      )}
      {findings.length > 0 && (
        <p class="banner warn">
          {describeFindings(findings)} <a href={podAddress(detail.row, "manifest")}>Show the manifest</a>
        </p>
      )}
      {detail.row.notice !== "" && (
        <p class="banner warn">
          <Plain text={detail.row.notice} />
        </p>
      )}
      <section class="card">
        <dl>
          <Fact name="Source" value={detail.row.source} />
          {detail.row.owner !== "" && <Fact name="Owner" value={detail.row.owner} />}
          <Fact name="IP" value={detail.row.ip} />
          {detail.services.map(({ name, type, address, ports }) => (
            <Fact
              key={`${type} ${name}`}
              name={type === "Ingress" ? type : "Service"}
              value={`${name} (${[type, address, ports.join(", ")].filter(Boolean).join(", ")})`}
            />
          ))}
          <Fact name="QoS class" value={qosClass} />
          <Fact name="Started" value={<At at={toMs(startTime)} />} />
        </dl>
        <Labels name="Labels" labels={detail.metadata.labels} />
        <Labels name="Annotations" labels={detail.metadata.annotations} />
      </section>
      {detail.imageUpdates.length > 0 && <ImageUpdates updates={detail.imageUpdates} now={now} />}
      <HistoryCharts
        path={`${path}/history`}
        now={now}
        cpuLimitCores={total("cpuLimitCores")}
        memoryLimitBytes={total("memoryLimitBytes")}
      />
      {detail.containers.map((container) => (
        <ContainerCard key={container.spec.name} container={container} now={now} />
      ))}
      {detail.volumes.length > 0 && (
        <Card title="Volumes">
          {detail.volumes.map((volume) => (
            <Meter
              key={volume.name}
              used={volume.usedBytes}
              total={volume.capacityBytes}
              text={describeVolume(volume)}
            />
          ))}
        </Card>
      )}
      <ConditionTable conditions={conditions} toneOf={podConditionTone} now={now} />
    </>
  );
}

function describeFindings(findings: ManifestView["findings"]): string {
  const errors = findings.filter(({ isError }) => isError).length;
  const [count, word] = errors > 0 ? [errors, "error"] : [findings.length, "warning"];
  return `The manifest has ${count === 1 ? `${word === "error" ? "an" : "a"} ${word}` : `${count} ${word}s`}.`;
}

/** `data (emptyDir): 8.0 KiB of 16.0 MiB (0 %)`; without its use where that is not measured. */
function describeVolume({ name, type, usedBytes, capacityBytes }: VolumeDetail): string {
  const title = `${name} (${type})`;
  if (capacityBytes === 0) return usedBytes === 0 ? title : `${title}: ${formatBytes(usedBytes)}`;
  return `${title}: ${formatShare(usedBytes, capacityBytes)}`;
}

function ImageUpdates({ updates, now }: { updates: readonly ImageUpdateRow[]; now: number }) {
  return (
    <Card title="Image updates">
      {updates.map(({ image, state, current, candidate, message, checkedAt }) => (
        <dl key={image}>
          <Fact name="Image" value={image} />
          <Fact name="State" value={message === "" ? state : `${state}: ${message}`} />
          <Fact name="Running" value={current} />
          {candidate !== "" && <Fact name="Update" value={candidate} />}
          <Fact name="Last checked" value={checkedAt > 0 ? <Ago at={checkedAt} now={now} /> : "never"} />
        </dl>
      ))}
    </Card>
  );
}

const KINDS = { init: "init container", sidecar: "sidecar", main: "", ephemeral: "ephemeral container" } as const;

function ContainerCard({ container, now }: { container: ContainerDetail; now: number }) {
  const { spec, status, cpuCores, cpuLimitCores, memoryBytes, memoryLimitBytes, throttling, oomKills } = container;
  const isRunning = status?.state.running !== undefined;
  const endedAt = toMs(status?.state.terminated?.finishedAt);
  const last = status?.lastState.terminated;
  return (
    <section class="card">
      <h2>
        <bdi>{spec.name}</bdi> <span class="namespace">{KINDS[container.kind]}</span>{" "}
        <Badge tone={statusTone(container.state, status?.ready || (isRunning && container.kind === "ephemeral"))}>
          <bdi>{container.state}</bdi>
        </Badge>
      </h2>
      <dl>
        <Fact name="Image" value={spec.image ?? ""} />
        <Fact name="Digest" value={(status?.imageID ?? "").replace(/^docker(-pullable)?:\/\//, "")} />
        <Fact name="Started" value={<Ago at={startOf(container)} now={now} />} />
        {endedAt > 0 && <Fact name="Ended" value={<Ago at={endedAt} now={now} />} />}
        <Fact name="Restarts" value={String(status?.restartCount ?? 0)} />
        {last && (
          <Fact
            name="Last end"
            value={
              <>
                <bdi>{`${last.reason ?? "ended"} (exit code ${last.exitCode})`}</bdi>,{" "}
                <Ago at={toMs(last.finishedAt)} now={now} />
              </>
            }
          />
        )}
        {throttling && <Fact name="CPU throttled" value={describeThrottling(throttling)} />}
        {oomKills !== null && <Fact name="OOM kills" value={String(oomKills)} />}
        {spec.ports?.[0] && <Fact name="Ports" value={spec.ports.map(describePort).join(", ")} />}
      </dl>
      {isRunning && (
        <div class="pair">
          <Meter
            used={cpuCores}
            total={cpuLimitCores}
            text={`CPU ${formatCores(cpuCores)}${cpuLimitCores > 0 ? ` of ${formatCores(cpuLimitCores)} cores (${formatPercent(cpuCores, cpuLimitCores)})` : " cores, no limit"}`}
          />
          <Meter
            used={memoryBytes}
            total={memoryLimitBytes}
            text={`Memory ${memoryLimitBytes > 0 ? formatShare(memoryBytes, memoryLimitBytes) : `${formatBytes(memoryBytes)}, no limit`}`}
          />
        </div>
      )}
      {(["startup", "readiness", "liveness"] as const).map((kind) => {
        const probe = spec[`${kind}Probe`];
        const attempts = container.probeAttempts[kind];
        return probe && <ProbeLine key={kind} kind={kind} probe={probe} attempts={attempts} now={now} />;
      })}
    </section>
  );
}

const describeThrottling = ({ throttled, periods }: NonNullable<ContainerDetail["throttling"]>) =>
  `${formatPercent(throttled, periods)} of the time (${throttled} of ${periods} periods)`;

function ProbeLine(props: { kind: string; probe: Probe; attempts: readonly ProbeAttempt[]; now: number }) {
  const { kind, probe, attempts, now } = props;
  const last = attempts.at(-1);
  const failed = attempts.findLast(({ result }) => result !== "success");
  return (
    <div class="probe">
      <span>
        {kind} probe{" "}
        <code>
          <Plain text={describeTarget(probe)} />
        </code>{" "}
        <span class="ago">{describeTiming(probe)}</span>
      </span>
      <ol class="answers" aria-label={`Last answers of the ${kind} probe, oldest first`}>
        {attempts.map(({ time, result, output, durationMs }) => (
          <li
            key={time}
            class={result}
            title={`${formatWholeTime(time)}: ${result}, ${Math.round(durationMs)} ms. ${plainText(output)}`}
          >
            <span class="hidden">{result}</span>
          </li>
        ))}
      </ol>
      {last && (
        <span class="note">
          {last.result} <Ago at={last.time} now={now} />
          {failed && failed !== last && (
            <>
              , {failed.result} <Ago at={failed.time} now={now} />
            </>
          )}
          {failed && failed.output !== "" && (
            <>
              : <Plain text={failed.output} />
            </>
          )}
        </span>
      )}
    </div>
  );
}
