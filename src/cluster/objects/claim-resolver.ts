import type { PersistentVolume } from "../../base/api/persistent-volume.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { DesiredPod } from "../../base/model/desired-state.ts";
import { canonicalJson, hex32 } from "../../base/text/json.ts";
import { replacedClaims, resolveClaims, toVolumeSource } from "../../controllers/claims.ts";
import { matchesNodeSelector } from "../../plan/node-affinity.ts";
import { isNotFound } from "../client/api-error.ts";
import type { ClusterClient } from "../client/cluster-client.ts";
import { WorkQueue } from "../client/work-queue.ts";

interface ClaimResolverDeps {
  client: Pick<ClusterClient, "request" | "reachability">;
  clock: Clock;
  nodeName: string;
  /** Labels of the Node; undefined before they are known. */
  nodeLabels: () => Readonly<Record<string, string>> | undefined;
  /** A claim was resolved, or another problem keeps it from that. */
  onChange: () => void;
}

/** The parts of a claim of the API server that are looked at. */
type ApiClaim = { metadata: { uid: string }; spec: { volumeName?: string }; status?: { phase?: string } };

type Resolved = { source: PersistentVolume } | { problem: string; isFinal: boolean };

const CHECK_FAILED = {
  options: "MountVolume.MountOptionSupport check failed for volume",
  affinity: "MountVolume.NodeAffinity check failed for volume",
};
const NO_MOUNT_OPTIONS = "mount options are not supported for this volume type";

const RETRY = { first: 1_000, longest: 10_000 };

/**
 * PersistentVolumeClaims of pods: each is asked for until it is bound to a PersistentVolume, which then takes its place
 * in the pod. Volumes of hostPath, local and NFS can be used here; others are problems that the pod shows.
 */
export class ClaimResolver {
  readonly #deps: ClaimResolverDeps;
  readonly #states = new Map<string, Resolved>();
  readonly #queue: WorkQueue;

  constructor(deps: ClaimResolverDeps) {
    this.#deps = deps;
    const { reachability } = deps.client;
    this.#queue = new WorkQueue({ reachability, retry: RETRY, work: (key) => this.#refresh(key) });
  }

  stop(): void {
    this.#queue.stop();
  }

  /** Sets the claims in use: others are forgotten, new ones are asked for. */
  setPods(pods: readonly DesiredPod[]): void {
    const wanted = new Set(pods.flatMap(claimsOf));
    this.#queue.retain(wanted);
    for (const key of this.#states.keys()) if (!wanted.has(key)) this.#states.delete(key);
    for (const key of wanted) {
      if (this.#states.has(key)) continue;
      const name = key.slice(key.indexOf("/") + 1);
      const problem = `waiting for the API server to return persistentvolumeclaim "${name}"`;
      this.#states.set(key, { problem, isFinal: false });
      this.#queue.add(key);
    }
  }

  /** Why a claim of a pod cannot be mounted; a claim that can is a volume by then. */
  problemOf({ metadata }: Pick<Pod, "metadata">, claimName: string): string {
    const state = this.#states.get(`${metadata.namespace ?? "default"}/${claimName}`);
    return state && "problem" in state ? state.problem : `persistentvolumeclaim "${claimName}" is not known yet`;
  }

  /** Whether the API server has said what the claims of the pod are: before, a pod that runs would change by them. */
  isSettled(desired: DesiredPod): boolean {
    return claimsOf(desired).every((key) => {
      const state = this.#states.get(key);
      return state !== undefined && ("source" in state || state.isFinal);
    });
  }

  /** The pod with its bound volumes in place of its claims. */
  resolve(desired: DesiredPod): DesiredPod {
    const pod = resolveClaims(desired.pod, (key) => {
      const state = this.#states.get(key);
      return state && "source" in state ? state.source : undefined;
    });
    if (pod === desired.pod) return desired;
    const revision = hex32(`${desired.revision}\n${canonicalJson(pod.spec.volumes)}`);
    return { ...desired, pod, claims: replacedClaims(desired.pod, pod), revision };
  }

  /** Why a bound volume cannot be mounted here. Source of the words: the kubelet's operation_generator. */
  #problemOf(name: string, volume: PersistentVolume): string | undefined {
    const { hostPath, mountOptions = [], nodeAffinity } = volume.spec;
    if (!toVolumeSource(volume, false)) return describeUnsupported(name, volume);
    if (hostPath && mountOptions.length > 0) return `${CHECK_FAILED.options} "${name}" : ${NO_MOUNT_OPTIONS}`;
    const labels = this.#deps.nodeLabels();
    if (labels && nodeAffinity?.required && !matchesNodeSelector(nodeAffinity.required, this.#deps.nodeName, labels))
      return `${CHECK_FAILED.affinity} "${name}" : no matching NodeSelectorTerms`;
    return undefined;
  }

  /** @throws Error when the claim has to be read again */
  async #refresh(key: string): Promise<void> {
    const before = this.#states.get(key);
    const state = await this.#read(key);
    if (!before || !this.#states.has(key)) return;
    this.#states.set(key, state);
    if (JSON.stringify(state) !== JSON.stringify(before)) this.#deps.onChange();
    if ("problem" in state) throw new Error(state.problem);
  }

  async #read(key: string): Promise<Resolved> {
    const { client } = this.#deps;
    const [namespace = "", name = ""] = key.split("/");
    try {
      const claim = await client.request<ApiClaim>({
        path: `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}`,
      });
      const { volumeName } = claim.spec;
      if (claim.status?.phase !== "Bound" || !volumeName)
        return { problem: `persistentvolumeclaim "${name}" is not bound`, isFinal: true };
      const volume = await client.request<PersistentVolume>({ path: `/api/v1/persistentvolumes/${volumeName}` });
      const { claimRef } = volume.spec as { claimRef?: { uid?: string } };
      if (claimRef?.uid !== claim.metadata.uid) {
        const problem = `persistentvolume "${volumeName}" is not bound to persistentvolumeclaim "${name}"`;
        return { problem, isFinal: true };
      }
      const problem = this.#problemOf(volumeName, volume);
      return problem === undefined ? { source: volume } : { problem, isFinal: true };
    } catch (error) {
      if (isNotFound(error)) return { problem: `persistentvolumeclaim "${name}" not found`, isFinal: true };
      return { problem: `persistentvolumeclaim "${name}": ${(error as Error).message}`, isFinal: false };
    }
  }
}

const COMMON_FIELDS = new Set([
  "capacity",
  "accessModes",
  "claimRef",
  "persistentVolumeReclaimPolicy",
  "storageClassName",
  "mountOptions",
  "volumeMode",
  "nodeAffinity",
]);

function describeUnsupported(name: string, { spec }: PersistentVolume): string {
  const kind = Object.keys(spec).find((field) => !COMMON_FIELDS.has(field)) ?? "unknown";
  return `persistentvolume "${name}" is of the kind ${kind}: kubelet-ts mounts local, hostPath and nfs volumes`;
}

const claimsOf = ({ pod }: DesiredPod): string[] =>
  (pod.spec.volumes ?? []).flatMap(({ persistentVolumeClaim: claim }) =>
    claim ? [`${pod.metadata.namespace ?? "default"}/${claim.claimName}`] : [],
  );
