import { DEPENDS_ON_ANNOTATION } from "../base/api/annotations.ts";
import type { IngressBackend } from "../base/api/ingress.ts";
import type { Pod } from "../base/api/pod.ts";
import { withRequests } from "../base/api/pod-requests.ts";
import type { Service } from "../base/api/service.ts";
import { ARCHITECTURE } from "../base/host/node-info.ts";
import { claimVolumeOf } from "../base/model/claim-volume.ts";
import { type DesiredPod, type ObjectIndex, podTemplateOf, type TypedObject } from "../base/model/desired-state.ts";
import type { Finding } from "../base/model/finding.ts";
import { mapContainers, type PodUID, podFullName } from "../base/model/pod.ts";
import { parseImageReference } from "../base/text/image-reference.ts";
import { isManifestUrl } from "../base/text/url.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { describePlaceholder, Field, FieldPath } from "../manifest/field.ts";
import type { ManifestResult, ObjectResult, ReadManifestOptions } from "../manifest/object-reading.ts";
import { readManifest } from "../manifest/read-manifest.ts";
import { backendsOf } from "../manifest/workloads/validate-ingress.ts";
import { MAX_MANIFEST_BYTES } from "../manifest/yaml/parse-stream.ts";
import { admitPods, rejectForNode } from "../plan/admission.ts";
import { classNameOf, isServedHere } from "../plan/ingress-config.ts";
import { computeNodeLabels, describeIgnoredLabels, matchesNode, matchesOnlyNode } from "../plan/node-affinity.ts";
import { environmentReferences, volumeReferences } from "../plan/object-references.ts";
import { findDependencyProblems } from "../plan/pod-dependencies.ts";
import { computeHostPorts, findNetworkMistake } from "../plan/pod-network.ts";
import { isCriticalPod } from "../plan/pod-resources.ts";
import { computeSysctlNamespace, findForbiddenSysctl, toDottedSysctl } from "../plan/security-profiles.ts";
import { allocateServices, describeHeld, type PortHolder, serviceName, toPortKey } from "../plan/service-addresses.ts";
import { hasSelector, ServicePods, targetPortOf, writtenEndpoints } from "../plan/service-endpoints.ts";
import { type ManifestInput, TOO_LONG } from "./client/manifest-inputs.ts";

/** Checks all inputs, then rules across them: duplicate objects and references to missing objects. */
export function checkInputs(
  inputs: readonly ManifestInput[],
  options: Omit<ReadManifestOptions, "file" | "source" | "keepPositions">,
  rules: NodeRules,
): ObjectResult[] {
  const read = inputs.flatMap((input): ManifestResult | [] => {
    if ("skipped" in input) return [];
    if ("problem" in input) return failedInput(input.file, input.problem);
    if (input.bytes.length >= MAX_MANIFEST_BYTES) return failedInput(input.file, TOO_LONG);
    const source = isManifestUrl(input.file) ? "http" : "file";
    return readManifest(input.bytes, { ...options, file: input.file, source, keepPositions: true });
  });
  const results = read.flatMap((manifest) => manifest.results);
  reportRefusals(results, reportDuplicates(results), rules);
  reportImages(results);
  reportServices(results);
  reportIngresses(results, reportPublished(results, rules.portHolder), rules.ingressPorts);
  reportDangling(results, indexObjects(read));
  reportClaims(results);
  reportDependencies(results);
  return results;
}

function failedInput(file: string, message: string): ManifestResult {
  const start = { file, document: 1, line: 1, column: 1 };
  const finding: Finding = { code: "syntax", severity: "error", ...start, field: "", message };
  const verdict = { kind: "", name: "", namespace: "", valid: false, ok: false };
  const result: ObjectResult = { file, document: 1, ...verdict, findings: [finding] };
  return { pods: [], configMaps: [], secrets: [], objects: [], locations: {}, findings: [finding], results: [result] };
}

function indexObjects(manifests: readonly ManifestResult[]): ObjectIndex {
  const byName = <T extends { metadata: { namespace?: string | undefined; name?: string | undefined } }>(
    objects: T[],
  ) => new Map(objects.map((object) => [podFullName(object.metadata), object]));
  return {
    configMaps: byName(manifests.flatMap((manifest) => manifest.configMaps)),
    secrets: byName(manifests.flatMap((manifest) => manifest.secrets)),
  };
}

function add(result: ObjectResult, code: "ignored" | "unsupported", path: FieldPath, message: string): void {
  const position = result.positions?.locate(path) ?? { line: 1, column: 1 };
  const at = { file: result.file, document: result.document, ...position };
  const severity = code === "ignored" ? "warning" : "error";
  result.findings.push({ code, severity, ...at, field: path.toString(), message });
  if (severity === "error") result.ok = false;
}

const isOk = ({ ok }: ObjectResult): boolean => ok;

/** Path of an object in its document. */
const pathOf = ({ positions }: ObjectResult): FieldPath => positions?.path ?? FieldPath.root;

/** Reports pods that the node would refuse, in the order in which it admits them. */
function reportRefusals(results: readonly ObjectResult[], duplicates: ReadonlySet<ObjectResult>, rules: NodeRules) {
  const candidates = candidatesOf(results.filter((result) => result.ok && !duplicates.has(result)));
  for (const [index, refusal] of findNodeRefusals(candidates, rules).entries()) {
    if (!refusal) continue;
    const { result } = candidates[index]!;
    // A warning on the same field says less.
    result.findings = result.findings.filter(({ field }) => field !== refusal.path.toString());
    add(result, refusal.isWarning ? "ignored" : "unsupported", refusal.path, refusal.message);
  }
}

/** The pods of objects, and of their templates. */
const candidatesOf = (results: readonly ObjectResult[]): (NodeCandidate & { result: ObjectResult })[] =>
  results.flatMap((result, index) => {
    const candidate = candidateOf(result, `template-${index}`);
    const isFetched = isManifestUrl(result.file) && { isFetched: true as const };
    return candidate ? [{ result, ...candidate, ...isFetched }] : [];
  });

/** The pod of an object, or the pods of its template. @param uid of a template */
function candidateOf(result: ObjectResult, uid: string): NodeCandidate | undefined {
  if (result.pod) return { pod: result.pod, path: pathOf(result) };
  const candidate = result.desired && toCandidate(result.desired, pathOf(result), uid);
  return candidate && { ...candidate, isFromTemplate: true };
}

/** @returns the objects that do not count because an earlier one has the same name */
function reportDuplicates(results: readonly ObjectResult[]): Set<ObjectResult> {
  const duplicates = new Set<ObjectResult>();
  const first = new Map<string, ObjectResult>();
  for (const result of results) {
    if (!result.ok || result.name === "") continue;
    const key = `${result.kind} ${result.namespace}/${result.name}`;
    const before = first.get(key);
    if (!before) first.set(key, result);
    else {
      duplicates.add(result);
      const path = pathOf(result).child("metadata").child("name");
      add(result, "ignored", path, `${key} is already defined in ${before.file}: the first one counts`);
    }
  }
  return duplicates;
}

/** Warns of dependencies between pods that name no pod or workload of the input, or form a cycle. */
function reportDependencies(results: readonly ObjectResult[]): void {
  // A refused pod may be the one that is meant.
  const candidates = candidatesOf(results);
  const problems = findDependencyProblems(candidates.map(({ pod }) => pod));
  for (const { result, pod, path } of candidates) {
    const problem = problems.get(pod.metadata.uid ?? "");
    if (!problem || !result.ok) continue;
    const at = path.child("metadata").child("annotations").key(DEPENDS_ON_ANNOTATION);
    add(result, "ignored", at, problem.message.replace(`${DEPENDS_ON_ANNOTATION}: `, ""));
  }
}

function containersOf({ spec }: Pod, path: FieldPath) {
  const field = new Field(spec, path.child("spec"));
  return [...field.field("initContainers").items(), ...field.field("containers").items()];
}

/** The kubelet runs the other containers of such a pod, as upstream's: only here it is an error. */
function reportImages(results: readonly ObjectResult[]): void {
  for (const { result, pod, path } of candidatesOf(results.filter(isOk))) {
    for (const image of containersOf(pod, path).map((container) => container.field("image"))) {
      const why = imageProblem(image.value ?? "");
      const found = `${JSON.stringify(image.value)})${describePlaceholder(image.value) || `: ${why}`}`;
      const message = `is no image name (found ${found}; its container would wait with InvalidImageName`;
      if (why !== undefined) add(result, "unsupported", image.path, message);
    }
  }
}

/** Warns of Services that select none of the pods of the input, and without a selector have no addresses in it. */
function reportServices(results: readonly ObjectResult[]): void {
  const written = new ServicePods([], writtenEndpoints(results.flatMap(({ desired }) => desired ?? [])));
  const labelsIn = new Map(
    Array.from(
      Map.groupBy(results.filter(mayHavePods), ({ namespace }) => namespace),
      ([namespace, others]) => {
        const labels = others.map((other) => candidateOf(other, "")?.pod.metadata).map((it) => it && (it.labels ?? {}));
        const pairs = new Set(labels.flatMap((it = {}) => Object.entries(it).map((pair) => pair.join("="))));
        const found = pairs.size > 0 ? `their labels are ${[...pairs].slice(0, 10).join(", ")}` : "they have no labels";
        return [namespace, { labels, found }] as const;
      },
    ),
  );
  for (const result of results) {
    if (!result.ok || result.desired?.kind !== "Service") continue;
    const { selector, type, ports = [] } = result.desired.object.spec;
    if (!hasSelector(result.desired.object)) {
      const backends = written.behind(result.desired.object);
      const port = ports.find((it) => backends.every((backend) => targetPortOf(it, backend) === undefined));
      const missing =
        backends.length === 0 ? "has no Endpoints in this input" : `no endpoint has its port "${port?.name ?? ""}"`;
      if (type !== "ExternalName" && (port || backends.length === 0))
        add(result, "ignored", pathOf(result).child("spec"), `has no selector, and ${missing}: it leads nowhere`);
      continue;
    }
    const { labels, found } = labelsIn.get(result.namespace) ?? {};
    const wanted = Object.entries(selector ?? {});
    // A refused workload, or one without replicas, may be the one that is meant.
    if (!labels || labels.some((it) => !it || wanted.every(([name, value]) => it[name] === value))) continue;
    const path = pathOf(result).child("spec").child("selector");
    add(result, "ignored", path, `selects no pod of this input: ${found}`);
  }
}

/**
 * Warns of Services that want a port of the machine that another one, or a pod, of the input has, or a program.
 * @returns what has a port then
 */
function reportPublished(results: readonly ObjectResult[], portHolder: PortHolder = () => undefined): PortHolder {
  const services = results.flatMap((result) =>
    result.ok && result.desired?.kind === "Service" ? [{ result, service: result.desired.object }] : [],
  );
  const known = { range: "", clusterIps: {}, ports: {}, nodePorts: {} };
  const hostPorts = new Map(
    results.flatMap((result) => {
      const pod = result.ok ? candidateOf(result, "")?.pod : undefined;
      const name = `the hostPort of ${result.kind} "${result.namespace}/${result.name}"`;
      return pod ? computeHostPorts(pod).map((it) => [toPortKey(it.protocol, it.hostPort), name] as const) : [];
    }),
  );
  const holderOf: PortHolder = (protocol, port, isOwn) =>
    hostPorts.get(toPortKey(protocol, port)) ?? portHolder(protocol, port, isOwn);
  const all = services.map(({ service }) => service);
  const { problems, addresses } = allocateServices(all, known, holderOf);
  for (const { result, service } of services) {
    const problem = problems.get(serviceName(service));
    if (problem) add(result, "ignored", pathOf(result).child("spec").child("ports"), problem.message);
  }
  return (protocol, port, isOwn) => {
    const service = addresses.ports[toPortKey(protocol, port)];
    return service === undefined ? holderOf(protocol, port, isOwn) : `Service "${service}"`;
  };
}

/** Warns of Ingresses that lead to no Service of the input, have no certificate in it, or are not served. */
function reportIngresses(results: readonly ObjectResult[], holderOf: PortHolder, ports: string): void {
  if (!results.some(({ kind }) => kind === "Ingress")) return;
  const held = describeHeld(
    ports.split(",").map((port) => toPortKey("TCP", Number(port))),
    (protocol, port) => holderOf(protocol, port, true),
  );
  const objects = results.flatMap(({ ok, desired }) => (ok && desired ? [desired] : []));
  const classes = objects.flatMap((it) => (it.kind === "IngressClass" ? [it.object] : []));
  for (const result of results) {
    if (!result.ok || result.desired?.kind !== "Ingress") continue;
    const { object } = result.desired;
    const { namespace } = object.metadata;
    const ingress = new Field(object, pathOf(result));
    if (!isServedHere(object, classes)) {
      const className = classNameOf(object, classes);
      const message = `nothing serves Ingresses of class ${JSON.stringify(className)} here: remove the class, or write "nginx"`;
      add(result, "ignored", ingress.field("spec").path, message);
      continue;
    }
    if (held !== undefined)
      add(result, "ignored", ingress.field("spec").path, `it is not served: ${held}: free it, or set --ingress-ports`);
    const others = results.filter((other) => other.namespace === namespace && other !== result);
    const services = others.flatMap((other) => (other.desired?.kind === "Service" ? [other.desired.object] : []));
    // The Service may be of another input, and a refused object the one that is meant.
    const isWhole = others.every(isOk) && (services.length > 0 || others.some(mayHavePods));
    for (const backend of isWhole ? backendsOf(ingress) : []) {
      const message = findBackendProblem(backend.value, services);
      if (message !== undefined) add(result, "ignored", backend.path, message);
    }
    const secrets = others.filter(({ kind }) => kind === "Secret");
    for (const tls of ingress.field("spec").field("tls").items()) {
      const { secretName = "" } = tls.value;
      if (secretName !== "" && secrets.some(({ name }) => name === secretName)) continue;
      const missing = secretName === "" ? "names no Secret" : `there is no Secret "${namespace}/${secretName}"`;
      add(result, "ignored", tls.path, `${missing} in this input: without it the hosts are not served by HTTPS`);
    }
  }
}

/** Why a backend has no Service in the input; undefined where it has one. */
function findBackendProblem({ service: wanted }: IngressBackend, services: readonly Service[]): string | undefined {
  const found = services.find(({ metadata }) => metadata.name === wanted?.name);
  if (!found) return `there is no Service "${wanted?.name}" in this input: requests are answered 503`;
  const { name, number } = wanted?.port ?? {};
  const ports = found.spec.ports ?? [];
  if (ports.some((port) => (name ? port.name === name : port.port === number))) return undefined;
  const all = ports.map((port) => (name ? (port.name ?? port.port) : port.port)).join(", ");
  return `Service "${wanted?.name}" has no port ${name ?? number}: it has ${all}`;
}

const mayHavePods = ({ pod, desired, ok }: ObjectResult): boolean =>
  !ok || pod !== undefined || (desired !== undefined && podTemplateOf(desired) !== undefined);

function imageProblem(image: string): string | undefined {
  try {
    parseImageReference(image);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * References to objects or keys that are not in the index: the pod waits for them. Optional ones are left out.
 * @param path of the pod in its document
 */
export function findDanglingReferences(pod: Pod, index: ObjectIndex, path: FieldPath = FieldPath.root) {
  const volumes = new Field(pod.spec, path.child("spec")).field("volumes").items();
  const references = [
    ...volumes.map((volume) => ({ owner: volume.path, references: volumeReferences(pod, volume.value) })),
    ...containersOf(pod, path).map((it) => ({ owner: it.path, references: environmentReferences(pod, it.value) })),
  ].flatMap(({ owner, references }) => references.map((it) => ({ ...it, owner })));
  const below = (from: FieldPath, step: string | number) =>
    typeof step === "number" ? from.index(step) : from.child(step);
  return references.flatMap(({ kind, fullName, keys = [], optional, owner, field }) => {
    if (optional) return [];
    const path = field.reduce<FieldPath>(below, owner);
    const found = kind === "ConfigMap" ? index.configMaps.get(fullName) : index.secrets.get(fullName);
    const named = `${kind} ${JSON.stringify(fullName)}`;
    if (!found) return [{ path, message: `there is no ${named}: the pod waits until there is, or set optional: true` }];
    const binary = "binaryData" in found ? found.binaryData : undefined;
    return keys
      .filter((key) => found.data?.[key] === undefined && binary?.[key] === undefined)
      .map((key) => ({ path, message: `${named} has no key ${JSON.stringify(key)}: the pod waits until it has` }));
  });
}

/** Mounts of a ConfigMap or Secret whose subPath is none of its files: the container finds an empty directory there. */
function findEmptyMounts(pod: Pod, index: ObjectIndex, path: FieldPath) {
  const { namespace } = pod.metadata;
  const mounts = containersOf(pod, path).flatMap((container) => container.field("volumeMounts").items());
  return mounts.flatMap((mount) => {
    const { configMap, secret } = pod.spec.volumes?.find(({ name }) => name === mount.value.name) ?? {};
    const fullName = podFullName({ namespace, name: configMap?.name ?? secret?.secretName ?? "" });
    const source = configMap ? index.configMaps.get(fullName) : secret && index.secrets.get(fullName);
    const subPath = (mount.value.subPath ?? "").replaceAll(/^\.\/|\/$/g, "");
    if (!source || subPath === "") return [];
    const keys = Object.keys({ ...source.data, ...("binaryData" in source && source.binaryData) });
    const files = (configMap ?? secret)?.items?.map((item) => item.path) ?? keys;
    if (files.some((file) => `${file}/`.startsWith(`${subPath}/`))) return [];
    const message = `the volume has no file ${JSON.stringify(subPath)}: an empty directory is mounted; its files are ${files.join(", ")}`;
    return [{ path: mount.field("subPath").path, message }];
  });
}

function reportDangling(results: readonly ObjectResult[], index: ObjectIndex): void {
  for (const { result, pod, path } of candidatesOf(results.filter(isOk))) {
    for (const dangling of [...findDanglingReferences(pod, index, path), ...findEmptyMounts(pod, index, path)])
      add(result, "ignored", dangling.path, dangling.message);
    for (const [item, { name = "" }] of (pod.spec.imagePullSecrets ?? []).entries()) {
      const fullName = podFullName({ namespace: pod.metadata.namespace, name });
      if (name === "" || index.secrets.has(fullName)) continue;
      const at = path.child("spec").child("imagePullSecrets").index(item).child("name");
      add(result, "ignored", at, `there is no Secret "${fullName}": images are pulled without its credentials`);
    }
  }
}

/** Warns of claims of a PersistentVolume that the input lacks. */
function reportClaims(results: readonly ObjectResult[]): void {
  const volumes = new Set(results.flatMap(({ kind, name }) => (kind === "PersistentVolume" ? [name] : [])));
  for (const result of results) {
    if (result.desired?.kind !== "PersistentVolumeClaim") continue;
    const { metadata, spec } = result.desired.object;
    const { volumeName = "" } = spec;
    const isOwn = volumeName === claimVolumeOf(metadata.namespace ?? "default", metadata.name ?? "");
    if (volumeName === "" || isOwn || volumes.has(volumeName)) continue;
    const at = pathOf(result).child("spec").child("volumeName");
    const effect =
      "until there is one the claim stays Pending, and its pods wait; without volumeName it is a Docker volume";
    add(result, "ignored", at, `there is no PersistentVolume "${volumeName}" in this input: ${effect}`);
  }
}

/** The pods that a workload wants at once; undefined for other objects, and for a workload without pods. */
function toCandidate(desired: TypedObject, path: FieldPath, uid: string): NodeCandidate | undefined {
  const template = podTemplateOf(desired);
  if (!template) return undefined;
  const { name, namespace } = desired.object.metadata;
  const pod = { ...withRequests(template), metadata: { ...template.metadata, name, namespace, uid } } as Pod;
  const specPath = path.child("spec");
  const templatePath = specPath.child("template");
  if (desired.kind === "CronJob") {
    return { pod, path: specPath.child("jobTemplate").child("spec").child("template") };
  }
  if (desired.kind === "DaemonSet") return { pod, path: templatePath, isDaemon: true };
  const { parallelism, completions = parallelism, replicas: count = 1 } = desired.object.spec as WorkloadCounts;
  const replicas =
    desired.kind === "Job"
      ? { count: Math.min(parallelism ?? 1, completions ?? 1), path: specPath.child("parallelism") }
      : { count, path: specPath.child("replicas") };
  return replicas.count > 0 ? { pod, path: templatePath, replicas } : undefined;
}

type WorkloadCounts = { parallelism?: number; completions?: number; replicas?: number };

/** The options of a node that decide which pods it runs, without its capacity and its engine. */
export type NodeRules = {
  nodeName: string;
  comparesAllLabels: boolean;
  /** The program that has a port of the machine, where the node is this machine. */
  portHolder?: PortHolder;
} & Pick<KubeletOptions, "allowPrivileged" | "allowedUnsafeSysctls" | "ingressPorts" | "maxPods" | "nodeLabels">;

/** A pod, or the pods of a workload. */
interface NodeCandidate {
  /** For a workload one pod of its template, with a UID of its own. */
  pod: Pod;
  /** Path of the pod or the template in its document. */
  path: FieldPath;
  /** Pods that the workload wants at once; absent for a pod. */
  replicas?: { count: number; path: FieldPath };
  /** No pod is made where the node does not match. */
  isDaemon?: true;
  /** It is made from the template of a workload. */
  isFromTemplate?: true;
  /** It comes from a URL. */
  isFetched?: true;
}

/** A pod that the node refuses; `path` is the field that causes it. */
interface NodeRefusal {
  path: FieldPath;
  message: string;
  /** The pods of the workload run, or some of them, or they run on a node with other labels. */
  isWarning?: true;
}

/**
 * Pods that a node with these options refuses to start, by the rules of the running kubelet. Rules that depend on the
 * machine or the engine (cpu, memory, runtimes) are not applied.
 * @param pods valid pods with their identity, and their paths in the document
 */
function findNodeRefusals(candidates: readonly NodeCandidate[], rules: NodeRules): (NodeRefusal | undefined)[] {
  const labels = computeNodeLabels(rules.nodeName, ARCHITECTURE, rules.nodeLabels);
  const pods = candidates.filter(({ pod, isDaemon }) => !isDaemon || matchesNode(pod, rules.nodeName, labels));
  const own = new Map(pods.map((one) => [one, findOwnRefusal(one.pod, one.path, rules)]));
  const node = { ...rules, name: rules.nodeName, labels };
  const admitted = pods.filter((one) => own.get(one) === undefined);
  // More replicas than the node takes are only counted. Critical pods get their places first.
  let left = rules.maxPods;
  const replicasOf = new Map<NodeCandidate, Pod[]>();
  for (const one of admitted.toSorted((a, b) => Number(isCriticalPod(b.pod)) - Number(isCriticalPod(a.pod)))) {
    const replicas = rejectForNode(toDesired(one, one.pod), node) ? [] : toReplicas(one, left);
    left -= replicas.length;
    replicasOf.set(one, replicas);
  }
  const { rejections } = admitPods({
    pods: admitted.flatMap((one) => [one.pod, ...replicasOf.get(one)!].map((pod) => toDesired(one, pod))),
    running: new Set<PodUID>(),
    node,
  });
  return candidates.map((one) => {
    const refusal = own.get(one);
    if (refusal) return refusal;
    const { pod, path, replicas } = one;
    const rejection = rejections.get(pod.metadata.uid!);
    if (!rejection) {
      const ignored = one.isFromTemplate && !one.isDaemon ? matchesOnlyNode(pod, rules.nodeName, labels).ignored : [];
      if (ignored.length > 0) {
        const message = describeIgnoredLabels(ignored);
        return { path: fieldOfRejection("NodeAffinity", pod, path), message, isWarning: true };
      }
      const run = (replicasOf.get(one) ?? []).filter(({ metadata }) => !rejections.has(metadata.uid!)).length + 1;
      if (!replicas || replicas.count <= run) return undefined;
      const message = `${replicas.count - run} of ${replicas.count} pods are refused: the node takes ${rules.maxPods} in all (--max-pods)`;
      return { path: replicas.path, message, isWarning: true };
    }
    const message = rejection.message.replace(/^Pod (?:Predicate \S+ failed: )?/, "");
    const at = fieldOfRejection(rejection.reason, pod, path);
    // Labels that are not given here may be given to the kubelet.
    const isOpen = rejection.reason === "NodeAffinity" && !rules.comparesAllLabels;
    const isWarning = isOpen && matchesOnlyNode(pod, rules.nodeName, labels).matches;
    return { path: at, message, ...(isWarning && { isWarning }) };
  });
}

const toDesired = ({ isFetched, isFromTemplate }: NodeCandidate, pod: Pod): DesiredPod => ({
  pod,
  source: isFetched ? "http" : "file",
  origin: "",
  revision: "",
  ...(isFromTemplate && { isFromTemplate }),
});

/** At most so many other pods of a workload, which only count here: ports that they share are reported by the template. */
function toReplicas({ pod, replicas }: NodeCandidate, most: number): Pod[] {
  const withoutPorts = <T extends object>(container: T) => ({ ...container, ports: [] });
  const count = Math.max(0, Math.min(most, (replicas?.count ?? 1) - 1));
  return Array.from({ length: count }, (_, index) => ({
    ...pod,
    metadata: { ...pod.metadata, uid: `${pod.metadata.uid}/${index}` },
    spec: mapContainers(pod.spec, withoutPorts),
  }));
}

function findOwnRefusal(pod: Pod, path: FieldPath, rules: NodeRules): NodeRefusal | undefined {
  const { spec } = pod;
  const specPath = path.child("spec");
  const sysctl = findForbiddenSysctl(pod, rules.allowedUnsafeSysctls);
  if (sysctl) {
    const name = /"([^"]+)"/.exec(sysctl)?.[1];
    const index = spec.securityContext.sysctls?.findIndex((item) => item.name === name) ?? -1;
    const at = specPath.child("securityContext").child("sysctls");
    const isAllowable = name !== undefined && computeSysctlNamespace(toDottedSysctl(name)) !== undefined;
    const isListed = sysctl.endsWith("not whitelisted");
    const message = isAllowable && isListed ? `${sysctl}; --allowed-unsafe-sysctls=${name} permits it` : sysctl;
    return { path: index < 0 ? at : at.index(index).child("name"), message };
  }
  const network = findNetworkMistake(pod);
  if (network) {
    return { path: path.child("metadata").child("annotations").key(network.annotation), message: network.why };
  }
  if (rules.allowPrivileged) return undefined;
  const settings = containersOf(pod, path).map((container) => container.field("securityContext").field("privileged"));
  const privileged = settings.find(({ value }) => value);
  const message = "privileged containers are not allowed on this node; --allow-privileged=true permits them";
  return privileged && { path: privileged.path, message };
}

function fieldOfRejection(reason: string, pod: Pod, path: FieldPath): FieldPath {
  const specPath = path.child("spec");
  if (reason === "NodeAffinity") return specPath.child(pod.spec.nodeSelector ? "nodeSelector" : "affinity");
  if (reason !== "NodePorts") return specPath;
  const containers = new Field(pod.spec.containers, specPath.child("containers")).items();
  const ports = containers.flatMap((container) => container.field("ports").items());
  return ports.map((port) => port.field("hostPort")).find(({ value = 0 }) => value > 0)?.path ?? specPath;
}
