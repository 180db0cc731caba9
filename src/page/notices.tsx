import { At } from "./parts.tsx";
import type { PageState } from "./store.ts";
import type { ClusterState, NodeState } from "./wire.ts";

/** Outages and the end of the session. Times are absolute: a text that changes is read out again. */
export function Notices({ state, loginError }: { state: PageState; loginError: string | undefined }) {
  const { connection, node, heardAtMs, hasExpired, privileged } = state;
  const isLive = connection === "live";
  return (
    <div class="notices" role="status" aria-live="polite">
      {connection === "lost" && (
        <p class="banner bad">
          The kubelet does not answer. What is shown is{" "}
          {heardAtMs > 0 ? (
            <>
              as of <At at={heardAtMs} />
            </>
          ) : (
            "old"
          )}
          ; trying again.
        </p>
      )}
      {isLive && node && node.problem !== "" && (
        <p class="banner warn">
          The kubelet reports since <At at={readySince(node)} />: <bdi>{node.problem}</bdi>
        </p>
      )}
      {isLive && node?.cluster?.failure && (
        <p class="banner warn">
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

const readySince = ({ conditions }: NodeState): number => conditions.find(({ type }) => type === "Ready")?.since ?? 0;

/** Why and since when the cluster is out of reach, and what works meanwhile. */
export function ClusterFailure({ cluster: { server, failure } }: { cluster: ClusterState }) {
  if (!failure) return null;
  return (
    <>
      The API server <bdi>{server}</bdi> {failure.isAnswering ? "has refused this node" : "has not answered"} since{" "}
      <At at={failure.since} />: <bdi>{failure.reason}</bdi>. Pods keep running as they were last received, and probes,
      restarts, logs and shells work. Changes from the cluster arrive when it{" "}
      {failure.isAnswering ? "accepts this node" : "answers"} again.
    </>
  );
}
