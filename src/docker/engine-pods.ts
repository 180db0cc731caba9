import { ConcurrencyLimit } from "../base/concurrency/concurrency-limit.ts";
import type { Owner } from "../base/model/container-engine.ts";
import { byNewest, type PodSnapshot } from "../base/model/pod-snapshot.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import { known } from "./engine/docker-error.ts";
import { toObserved } from "./inspect-to-snapshot.ts";
import { LABEL } from "./labels.ts";

/** A pod by its containers alone, as the engine knows them while no kubelet runs. */
export interface EnginePod {
  owner: Owner;
  snapshot: PodSnapshot;
  /** Grace period of the pod by its containers' labels. Unit: seconds. */
  graceSeconds: number;
}

/** Inspects at the same time; more make each of them slower. */
const MAX_INSPECTS = 8;
const DEFAULT_GRACE_SECONDS = 30;

/**
 * The pods of a root directory, of every node name it was used with.
 * @param rootHash undefined: of all root directories
 */
export async function listEnginePods(
  client: DockerClient,
  rootHash: string | undefined,
  signal: AbortSignal,
): Promise<EnginePod[]> {
  const label = [rootHash === undefined ? LABEL.root : `${LABEL.root}=${rootHash}`, LABEL.node];
  const listed = await client.listContainers({ all: true, filters: { label } }, { signal });
  const gate = new ConcurrencyLimit(MAX_INSPECTS);
  const inspected = await Promise.all(
    // undefined: removed since the list.
    listed.map(({ Id }) => gate.run(signal, () => known(client.inspectContainer(Id, { signal })))),
  );
  const pods = new Map<string, EnginePod>();
  for (const inspect of inspected) {
    const observed = inspect && toObserved(inspect);
    if (!inspect || !observed) continue;
    const labels = inspect.Config.Labels;
    const owner = { nodeName: labels[LABEL.node] ?? "", rootHash: labels[LABEL.root] ?? "" };
    const { uid, name, namespace } = observed.pod;
    const key = `${owner.rootHash} ${owner.nodeName} ${uid}`;
    const pod = pods.get(key) ?? {
      owner,
      snapshot: { uid, name, namespace, sandboxes: [], containers: [] },
      graceSeconds: DEFAULT_GRACE_SECONDS,
    };
    pods.set(key, pod);
    if (observed.kind === "sandbox") pod.snapshot.sandboxes.push(observed.sandbox);
    else {
      pod.snapshot.containers.push(observed.container);
      const grace = labels[LABEL.terminationGracePeriod];
      if (grace !== undefined && /^\d+$/.test(grace)) pod.graceSeconds = Number(grace);
    }
  }
  for (const { snapshot } of pods.values()) {
    snapshot.containers.sort(byNewest);
    snapshot.sandboxes.sort((a, b) => b.attempt - a.attempt || b.createdAt.getTime() - a.createdAt.getTime());
  }
  const nameOf = ({ snapshot }: EnginePod) => `${snapshot.namespace}/${snapshot.name}`;
  return [...pods.values()].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}
