import { Fact } from "./facts.tsx";
import { formatBytes, formatCores, formatPercent, formatWholeTime } from "./format.ts";
import { plainText } from "./log-text.ts";
import { Ago, Badge, Meter, Plain, statusTone } from "./parts.tsx";
import type { ContainerDetail, ProbeHistory } from "./wire.ts";

const KINDS = { init: "init container", sidecar: "sidecar", main: "", ephemeral: "ephemeral container" } as const;

/** State, image, use against limits and probes of a container. */
export function ContainerCard({ container, now }: { container: ContainerDetail; now: number }) {
  const { cpuCores, cpuLimitCores, memoryBytes, memoryLimitBytes } = container;
  return (
    <section class="card">
      <h2>
        <bdi>{container.name}</bdi> <span class="namespace">{KINDS[container.kind]}</span>{" "}
        <Badge
          tone={statusTone(container.state, container.ready || (container.isRunning && container.kind === "ephemeral"))}
        >
          <bdi>{container.state}</bdi>
        </Badge>
      </h2>
      <dl>
        <Fact name="Image" value={container.image} />
        <Fact name="Digest" value={container.imageId} />
        <div>
          <dt>Started</dt>
          <dd>
            <Ago at={container.startedAt} now={now} />
          </dd>
        </div>
        {container.endedAt > 0 && (
          <div>
            <dt>Ended</dt>
            <dd>
              <Ago at={container.endedAt} now={now} />
            </dd>
          </div>
        )}
        <Fact name="Restarts" value={String(container.restarts)} />
        {container.lastEnd && (
          <div>
            <dt>Last end</dt>
            <dd>
              <bdi>{container.lastEnd.text}</bdi>, <Ago at={container.lastEnd.at} now={now} />
            </dd>
          </div>
        )}
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
            text={`CPU ${formatCores(cpuCores)}${cpuLimitCores > 0 ? ` of ${formatCores(cpuLimitCores)} cores (${formatPercent(cpuCores, cpuLimitCores)})` : " cores, no limit"}`}
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
  const failed = probe.answers.findLast(({ result }) => result !== "success");
  return (
    <div class="probe">
      <span>
        {probe.kind} probe{" "}
        <code>
          <Plain text={probe.target} />
        </code>{" "}
        <span class="ago">{probe.timing}</span>
      </span>
      <ol class="answers" aria-label={`Last answers of the ${probe.kind} probe, oldest first`}>
        {probe.answers.map((answer) => (
          <li
            key={answer.time}
            class={answer.result}
            title={`${formatWholeTime(answer.time)}: ${answer.result}, ${Math.round(answer.durationMs)} ms. ${plainText(answer.output)}`}
          >
            <span class="hidden">{answer.result}</span>
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
