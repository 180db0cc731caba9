import { formatUntil, shortSource } from "./format.ts";
import { Age, Badge, Plain, TableHead, timeOf } from "./parts.tsx";
import { overviewAddress } from "./router.ts";
import { DEFAULT_FILTER } from "./store.ts";
import type { WorkloadRow } from "./wire.ts";

/** A filter that finds the pods of a workload by their owner; those of a CronJob are owned by its Jobs. */
const ownerText = (kind: string, name: string): string => (kind === "CronJob" ? `Job ${name}-` : `${kind} ${name}`);

/** Deployments, Jobs and the like: those without pods are seen nowhere else. */
export function WorkloadTable({ workloads, now }: { workloads: readonly WorkloadRow[]; now: number }) {
  return (
    <section class="card workloads">
      <h2>Workloads</h2>
      <table class="stacked">
        <TableHead columns={["Workload", "Status", "Runs", "Source"]} />
        <tbody>
          {workloads.map(({ kind, namespace, name, status, isGood, detail, source, lastRun, nextRun }) => (
            <tr key={`${kind} ${namespace}/${name}`}>
              <th scope="row">
                <a href={overviewAddress({ ...DEFAULT_FILTER, text: ownerText(kind, name) })}>
                  <bdi>{name}</bdi>
                </a>
                <span class="namespace">
                  <bdi>{namespace}</bdi>, {kind}
                </span>
              </th>
              <td>
                <Badge tone={isGood ? (kind === "CronJob" || kind === "Job" ? "idle" : "good") : "warn"}>
                  {status}
                </Badge>
                {detail !== "" && (
                  <div class="why">
                    <Plain text={detail} />
                  </div>
                )}
              </td>
              <td>
                {lastRun > 0 && (
                  <div>
                    last <Age at={lastRun} now={now} /> ago
                  </div>
                )}
                {nextRun > 0 && <div>next {timeOf(nextRun, formatUntil(nextRun, now))}</div>}
                {lastRun === 0 && nextRun === 0 && "-"}
              </td>
              <td class="source" title={source}>
                <Plain text={shortSource(source)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
