import { createHash } from "node:crypto";
import { IP_ANNOTATION, NETWORK_ANNOTATION } from "../base/api/annotations.ts";
import type { Container, ContainerResizePolicy, Pod, Volume } from "../base/api/pod.ts";
import { computeHostPorts } from "./pod-network.ts";
import { computeQosClass, isCriticalPod, memoryBytesOf } from "./pod-resources.ts";
import { isSidecar } from "./restart-policy.ts";
import { computeAppArmorProfile, computeSeccompProfile } from "./security-profiles.ts";

/** JSON with sorted keys in which absent and empty are the same: a field of a later version changes no hash. */
function toCanonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    const entries = Object.entries(part).filter(([, member]) => !isNothing(member));
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

const isNothing = (value: unknown) =>
  value === undefined ||
  value === null ||
  (typeof value === "object" && Object.values(value).every((member) => member === undefined));

const toHash = (value: unknown) => createHash("sha256").update(toCanonicalJson(value)).digest("hex").slice(0, 16);

/** Revision of what only a new sandbox can change, and so a restart of the whole pod. */
export function computeSandboxHash(pod: Pod): string {
  const { spec, metadata } = pod;
  return toHash({
    hostNetwork: spec.hostNetwork,
    hostPID: spec.hostPID,
    hostIPC: spec.hostIPC,
    hostUsers: spec.hostUsers,
    shareProcessNamespace: spec.shareProcessNamespace,
    hostname: spec.hostname,
    subdomain: spec.subdomain,
    setHostnameAsFQDN: spec.setHostnameAsFQDN,
    hostnameOverride: spec.hostnameOverride,
    dnsPolicy: spec.dnsPolicy,
    dnsConfig: spec.dnsConfig,
    runtimeClassName: spec.runtimeClassName,
    securityContext: spec.securityContext,
    hostPorts: computeHostPorts(pod),
    network: metadata.annotations?.[NETWORK_ANNOTATION],
    ip: metadata.annotations?.[IP_ANNOTATION],
    qosClass: computeQosClass(pod),
  });
}

/** Revision of the init containers, sidecars left out: an edit of one starts the pod again, as the sandbox hash does. */
export const computeInitHash = ({ spec }: Pod): string =>
  toHash(
    (spec.initContainers ?? [])
      .filter((container) => !isSidecar(container))
      .map(({ resizePolicy: _, imagePullPolicy: __, ...container }) => ({
        ...container,
        resources: toFixedResources({ ...container, resizePolicy: _ }),
      })),
  );

const RESIZABLE = ["cpu", "memory"] as const;

const restartsOnResize = (policies: readonly ContainerResizePolicy[] | undefined, resource: string) =>
  policies?.some(
    ({ resourceName, restartPolicy }) => resourceName === resource && restartPolicy === "RestartContainer",
  );

/** Requests and limits without the part that can be changed in the running container. */
function toFixedResources({ resources, resizePolicy }: Container) {
  const resizable = RESIZABLE.filter((resource) => !restartsOnResize(resizePolicy, resource));
  const withoutResizable = (list: Container["resources"]["limits"]) =>
    list && Object.fromEntries(Object.entries(list).filter(([name]) => !resizable.some((other) => other === name)));
  return {
    ...resources,
    requests: withoutResizable(resources.requests),
    limits: withoutResizable(resources.limits),
    // The engine changes a memory limit in place, but cannot take one away.
    hasMemoryLimit: memoryBytesOf(resources.limits) > 0,
  };
}

/** A mount that is there keeps its options. Source: the kubelet never mounts a volume of a running pod again. */
function withoutMountOptions(volume: Volume): Volume {
  const { local: _, ...hostPath } = volume.hostPath ?? {};
  const { mountOptions: __, ...nfs } = volume.nfs ?? {};
  return { ...volume, ...(volume.hostPath && { hostPath }), ...(volume.nfs && { nfs }) } as Volume;
}

/**
 * Revision of one container: an edit restarts it and no other. Left out is what takes effect without a restart.
 * @param sourcesRevision of the ConfigMaps and Secrets of its environment; "" for none
 */
export function computeContainerHash(pod: Pod, container: Container, sourcesRevision: string): string {
  const { resizePolicy: _, imagePullPolicy: __, ...fixed } = container;
  const mounted = new Set(
    [...(container.volumeMounts ?? []), ...(container.volumeDevices ?? [])].map(({ name }) => name),
  );
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.fileKeyRef) mounted.add(valueFrom.fileKeyRef.volumeName);
  }
  return toHash({
    container: { ...fixed, resources: toFixedResources(container) },
    volumes: (pod.spec.volumes ?? []).filter(({ name }) => mounted.has(name)).map(withoutMountOptions),
    hostAliases: pod.spec.hostAliases,
    // The deprecated annotations count only through what they mean for this container.
    seccomp: computeSeccompProfile(pod, container),
    appArmor: computeAppArmorProfile(pod, container),
    critical: isCriticalPod(pod) || undefined,
    sourcesRevision: sourcesRevision || undefined,
  });
}
