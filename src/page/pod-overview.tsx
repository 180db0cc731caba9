import { ConditionTable, podConditionTone } from "./condition-table.tsx";
import { ContainerCard } from "./container-card.tsx";
import { Fact, Labels } from "./facts.tsx";
import { formatBytes, formatPercent, splitFact } from "./format.ts";
import { HistoryCharts } from "./history-charts.tsx";
import { Ago, At, Meter, Plain } from "./parts.tsx";
import { podAddress } from "./router.ts";
import type { ImageUpdateRow, ManifestView, PodDetail, VolumeDetail } from "./wire.ts";

/** The first view of a pod: why it is not ready, usage, containers, volumes, conditions. */
export function PodOverview({ detail, path, now }: { detail: PodDetail; path: string; now: number }) {
  const total = (key: "cpuLimitCores" | "memoryLimitBytes") => {
    const mains = detail.containers.filter(({ kind }) => kind === "main" || kind === "sidecar");
    return mains.every((container) => container[key] > 0)
      ? mains.reduce((sum, container) => sum + container[key], 0)
      : 0;
  };
  const { findings } = detail.manifest;
  return (
    <>
      {detail.explanation.length > 0 && (
        <section class="card warn" aria-label={detail.row.isReady ? "Restarts" : "Why this pod is not ready"}>
          <h2>{detail.row.isReady ? "Restarted a short time ago" : "Why it is not ready"}</h2>
          {detail.explanation.map(({ problem, facts, fix }) => (
            <div key={problem} class="explanation">
              <Plain text={problem} />
              {facts.map((fact, index) => (
                <div key={index} class="note">
                  <FactText text={fact} />
                </div>
              ))}
              {fix !== "" && (
                <div>
                  → <Plain text={fix} />
                </div>
              )}
            </div>
          ))}
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
          <Fact name="IP" value={detail.row.ip || "-"} />
          <Fact name="QoS class" value={detail.qosClass} />
          <div>
            <dt>Started</dt>
            <dd>
              <At at={detail.startedAt} />
            </dd>
          </div>
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
          {detail.volumes.map((volume) => (
            <Meter
              key={volume.name}
              used={volume.usedBytes}
              total={volume.capacityBytes}
              text={describeVolume(volume)}
            />
          ))}
        </section>
      )}
      <ConditionTable conditions={detail.conditions} toneOf={podConditionTone} now={now} />
    </>
  );
}

/** A fact of `kubelet-ts explain`, which has its time in UTC: shown as all times of the page. Lines of a log stay as they are. */
const FactText = ({ text }: { text: string }) => {
  const { before, at, after } = splitFact(text);
  // A program's output must not move the kubelet's own words.
  return (
    <>
      <Plain text={before} />
      {at > 0 && <At at={at} />}
      {after !== "" && <Plain text={after} />}
    </>
  );
};

function describeFindings(findings: ManifestView["findings"]): string {
  const errors = findings.filter(({ isError }) => isError).length;
  const [count, word] = errors > 0 ? [errors, "error"] : [findings.length, "warning"];
  return `The manifest has ${count === 1 ? `${word === "error" ? "an" : "a"} ${word}` : `${count} ${word}s`}.`;
}

/** `data (emptyDir): 8.0 KiB of 16.0 MiB (0 %)`; without its use where that is not measured. */
function describeVolume({ name, type, usedBytes, capacityBytes }: VolumeDetail): string {
  const title = `${name} (${type})`;
  if (capacityBytes === 0) return usedBytes === 0 ? title : `${title}: ${formatBytes(usedBytes)}`;
  const share = formatPercent(usedBytes, capacityBytes);
  return `${title}: ${formatBytes(usedBytes)} of ${formatBytes(capacityBytes)} (${share})`;
}

function ImageUpdates({ updates, now }: { updates: readonly ImageUpdateRow[]; now: number }) {
  return (
    <section class="card">
      <h2>Image updates</h2>
      {updates.map(({ image, state, current, candidate, message, checkedAt }) => (
        <dl key={image}>
          <Fact name="Image" value={image} />
          <Fact name="State" value={message === "" ? state : `${state}: ${message}`} />
          <Fact name="Running" value={current || "-"} />
          {candidate !== "" && <Fact name="Update" value={candidate} />}
          <div>
            <dt>Last checked</dt>
            <dd>{checkedAt > 0 ? <Ago at={checkedAt} now={now} /> : "never"}</dd>
          </div>
        </dl>
      ))}
    </section>
  );
}
