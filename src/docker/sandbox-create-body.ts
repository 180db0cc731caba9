import { IP_ANNOTATION, NETWORK_ANNOTATION } from "../base/api/annotations.ts";
import type { Pod } from "../base/api/pod.ts";
import type { Owner, SandboxRequest } from "../base/model/container-engine.ts";
import type { EngineInfo } from "../base/model/node.ts";
import { nameWithoutNode } from "../base/model/pod-ref.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { toCgroupParent, toPodCgroupName } from "../plan/pod-cgroup.ts";
import { computePodHostname } from "../plan/pod-hostname.ts";
import { computeHostPorts, computeUserNetwork } from "../plan/pod-network.ts";
import { computeQosClass } from "../plan/pod-resources.ts";
import { computeSysctls } from "../plan/sysctls.ts";
import type { ContainerCreateBody, EndpointConfig, LogConfig, PortBinding } from "./engine/container-create-body.ts";
import { toSandboxLabels } from "./labels.ts";
import { MappingError, unsupported } from "./mapping-error.ts";
import { clampOomScoreAdj, SANDBOX_CPU_SHARES, SANDBOX_OOM_SCORE_ADJ } from "./resources.ts";
import { computeGroupAdd, computeSandboxSecurityOpt, computeSandboxUser, hasSecurityOption } from "./security.ts";

type CgroupSettings = Pick<KubeletOptions, "cgroupRoot" | "cgroupsPerQos">;
type LogSettings = Pick<KubeletOptions, "containerLogMaxSizeBytes" | "containerLogMaxFiles">;

/**
 * Docker's `CgroupParent` of everything in a pod; undefined lets the engine choose.
 */
export function computeCgroupParent(pod: Pod, engine: EngineInfo, settings: CgroupSettings): string | undefined {
  if (!settings.cgroupsPerQos) return settings.cgroupRoot || undefined;
  const name = toPodCgroupName(pod.metadata.uid ?? "", computeQosClass(pod));
  return toCgroupParent(name, engine.cgroupDriver, settings.cgroupRoot);
}

/** json-file with rotation: without it Docker's logs grow without limit. */
export const toLogConfig = ({ containerLogMaxSizeBytes, containerLogMaxFiles }: LogSettings): LogConfig => ({
  Type: "json-file",
  Config: { "max-size": String(containerLogMaxSizeBytes), "max-file": String(containerLogMaxFiles) },
});

/** On an engine that remaps users, `host` takes the pod out of the mapping, which namespaces of the host require. */
export function computeUsernsMode({ spec }: Pod, engine: EngineInfo): string | undefined {
  if (!hasSecurityOption(engine, "userns")) return undefined;
  const sharesHost = spec.hostNetwork || spec.hostPID || spec.hostIPC;
  return spec.hostUsers === true || (spec.hostUsers === undefined && sharesHost) ? "host" : undefined;
}

/** Runtimes that a pod may have. Engines list containerd's own names of runc too, which are no choice. */
export const usableRuntimes = ({ runtimes }: EngineInfo): string[] =>
  runtimes.filter((runtime) => !/^io\.containerd\.(runc|runtime)\./.test(runtime)).sort();

/** Message with the runtimes that a pod could have instead. */
export const describeMissingRuntime = (name: string, engine: EngineInfo): string =>
  `the engine has no runtime ${JSON.stringify(name)}, only ${usableRuntimes(engine).join(", ")}`;

/** Docker's `Runtime`. @param handler of the RuntimeClass in a cluster; absent: the class names the runtime */
export function computeRuntime({ spec }: Pod, engine: EngineInfo, handler?: string): string | undefined {
  const runtime = handler ?? spec.runtimeClassName;
  if (!runtime) return undefined;
  if (engine.runtimes.includes(runtime)) return runtime;
  const message = describeMissingRuntime(runtime, engine);
  throw unsupported("spec.runtimeClassName", message, "CreatePodSandboxError");
}

interface SandboxNetworkMode {
  mode: string;
  endpoint?: EndpointConfig;
}

function computeNetwork(pod: Pod, hostname: string): SandboxNetworkMode {
  if (pod.spec.hostNetwork) return { mode: "host" };
  const annotations = pod.metadata.annotations ?? {};
  const network = computeUserNetwork(pod);
  if (!network) return { mode: annotations[NETWORK_ANNOTATION] || "default" };

  const ip = annotations[IP_ANNOTATION];
  const aliases = new Set([pod.metadata.name ?? "", nameWithoutNode(pod), hostname]);
  const ipam = ip && { IPAMConfig: ip.includes(":") ? { IPv6Address: ip } : { IPv4Address: ip } };
  return { mode: network, endpoint: { Aliases: [...aliases], ...ipam } };
}

/**
 * The pod's sandbox: pause, with ports, DNS, host name and sysctls of the pod. Source: dockershim 1.20.
 * @throws MappingError
 */
export function toSandboxCreateBody(request: SandboxRequest, owner: Owner): ContainerCreateBody {
  const { pod, engine, settings, dns } = request;
  const { spec } = pod;
  const host = computePodHostname(pod, settings.clusterDomain);
  if ("problem" in host) throw new MappingError("CreatePodSandboxError", host.problem);

  const user = computeSandboxUser(pod);
  const groups = computeGroupAdd(pod);
  const sysctls = computeSysctls(pod);
  const cgroupParent = computeCgroupParent(pod, engine, settings);
  const usernsMode = computeUsernsMode(pod, engine);
  const runtime = computeRuntime(pod, engine, request.runtimeHandler);
  const { PortBindings, ExposedPorts } = request.usesNetworkPlugin
    ? { PortBindings: {}, ExposedPorts: {} }
    : computePortBindings(pod);
  const network: SandboxNetworkMode = request.usesNetworkPlugin
    ? { mode: "none" }
    : computeNetwork(pod, host.kernelHostname);
  return {
    Image: request.image,
    // A pod in the node's network has the node's host name.
    ...(!spec.hostNetwork && { Hostname: host.kernelHostname }),
    ...(user !== undefined && { User: user }),
    ExposedPorts,
    Labels: toSandboxLabels(pod, owner, request),
    HostConfig: {
      NetworkMode: network.mode,
      IpcMode: spec.hostIPC ? "host" : "shareable",
      ...(spec.hostPID && { PidMode: "host" }),
      ...(usernsMode && { UsernsMode: usernsMode }),
      PortBindings,
      ...(dns && {
        Dns: dns.nameservers,
        // Without any, the engine would take the node's; a lone dot is its way to say none.
        DnsSearch: dns.searches.length > 0 ? dns.searches : ["."],
        DnsOptions: dns.options,
      }),
      ...(groups.length > 0 && { GroupAdd: groups }),
      ...(Object.keys(sysctls).length > 0 && { Sysctls: sysctls }),
      SecurityOpt: computeSandboxSecurityOpt(pod),
      ...(cgroupParent && { CgroupParent: cgroupParent }),
      ...(runtime && { Runtime: runtime }),
      CpuShares: SANDBOX_CPU_SHARES,
      OomScoreAdj: clampOomScoreAdj(SANDBOX_OOM_SCORE_ADJ, engine),
      LogConfig: toLogConfig(settings),
    },
    ...(network.endpoint && { NetworkingConfig: { EndpointsConfig: { [network.mode]: network.endpoint } } }),
  };
}

/** Docker's `PortBindings` and `ExposedPorts` of the sandbox; a port without hostPort has no effect. */
function computePortBindings(pod: Pod): {
  PortBindings: Record<string, PortBinding[]>;
  ExposedPorts: Record<string, Record<string, never>>;
} {
  const bindings: Record<string, PortBinding[]> = {};
  for (const { hostIP, hostPort, protocol, containerPort } of computeHostPorts(pod)) {
    const key = `${containerPort}/${protocol.toLowerCase()}`;
    bindings[key] ??= [];
    bindings[key].push({ HostIp: hostIP, HostPort: String(hostPort) });
  }
  return { PortBindings: bindings, ExposedPorts: Object.fromEntries(Object.keys(bindings).map((key) => [key, {}])) };
}
