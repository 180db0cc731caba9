import { formatTime, toMs } from "./format.ts";
import { At, Button, Plain, timeOf } from "./parts.tsx";
import type { PageState } from "./store.ts";
import type { ClusterState, NodeState } from "./wire.ts";

/** Outages and the end of the session. Times are absolute: a text that changes is read out again. */
export function Notices({ state, loginError }: { state: PageState; loginError: string | undefined }) {
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

/** Why and since when the cluster is out of reach, and what works meanwhile. */
export function ClusterFailure({ cluster: { server, failure } }: { cluster: ClusterState }) {
  if (!failure) return null;
  return (
    <>
      The API server <bdi>{server}</bdi> {failure.isAnswering ? "has refused this node" : "has not answered"} since{" "}
      <At at={failure.since} />: <Plain text={failure.reason} />. Pods keep running as they were last received, and
      probes, restarts, logs and shells work. Changes from the cluster arrive when it{" "}
      {failure.isAnswering ? "accepts this node" : "answers"} again.
    </>
  );
}
