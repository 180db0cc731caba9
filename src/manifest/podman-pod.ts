import { createHash } from "node:crypto";
import {
  IMAGE_UPDATE_ANNOTATION,
  INIT_ANNOTATION,
  requiredFormat,
  ULIMITS_ANNOTATION,
} from "../base/api/annotations.ts";
import type { Container, ContainerPort } from "../base/api/container.ts";
import type { ObjectMeta } from "../base/api/meta.ts";
import type { Pod, PodSpec } from "../base/api/pod.ts";
import { containersOf } from "../base/model/pod.ts";
import type { Field, SupportNote } from "./field.ts";
import { FOREIGN_ANNOTATION } from "./support/pod-notes.ts";
import {
  checkDnsLabel,
  checkDnsSubdomain,
  checkLabelValue,
  checkPortName,
  checkQualifiedName,
} from "./validate/names.ts";

/**
 * Accepts what only Kubernetes refuses of the pods that `podman kube generate` writes and `podman kube play` reads.
 * Changes the pod in place.
 */
export function adaptPodmanPod(pod: Field<Pod>): SupportNote[] {
  const spec = pod.field("spec");
  return [
    ...readAnnotations(pod),
    ...removeAnnotations(pod),
    ...removeLabels(pod),
    ...renameVolumes(spec),
    ...renameContainers(spec),
    ...renamePorts(spec),
    ...renameHost(spec),
    ...correctCase(spec),
    ...addContainerPorts(spec),
    ...publishOnce(spec),
  ];
}

/** Annotations of podman, of the pod or of a container, that say what one of kubelet-ts says of the pod. */
function readAnnotations(pod: Field<Pod>): SupportNote[] {
  const { annotations = {} } = pod.value.metadata;
  return Object.entries(annotations).flatMap(([name, value]) => {
    const word = /^io\.podman\.annotations\.(ulimit|init)(?:\/|$)/.exec(name)?.[1];
    const ours = word === "init" ? INIT_ANNOTATION : ULIMITS_ANNOTATION;
    const written = value.toLowerCase();
    if (!word || written === "false" || ours in annotations || requiredFormat(ours, written)) return [];
    delete annotations[name];
    annotations[ours] = written;
    return pod.field("metadata").field("annotations").note(`${name} is read as ${ours}, for all containers of the pod`);
  });
}

/**
 * Podman 3.4 to 4.3 puts paths into keys: `bind-mount-options:/home/x/data`. Annotations of a container end with its name:
 * `run.oci.keep_original_groups/web`, `example.com/a/web`.
 */
function removeAnnotations(pod: Field<Pod>): SupportNote[] {
  const { metadata, spec } = pod.value;
  const containers = containersOf(spec).map(({ name }) => `/${name}`);
  const isOfPodman = (key: string) => FOREIGN_ANNOTATION.test(key) || containers.some((end) => key.endsWith(end));
  const isMalformed = (key: string) => checkQualifiedName(key.toLowerCase()).length > 0;
  const annotations = pod.field("metadata").field("annotations").entries();
  return annotations.flatMap(([key, annotation]) => {
    if (!isOfPodman(key) || !isMalformed(key)) return [];
    delete metadata.annotations?.[key];
    const why = "Kubernetes has no such names of annotations; podman reads it";
    return annotation.note(`has no effect here and is left out: ${why}`);
  });
}

/** No selector can ask for a label that Kubernetes has no such name or value for. */
function removeLabels(pod: Field<Pod>): SupportNote[] {
  const labels = pod.field("metadata").field("labels").entries();
  return labels.flatMap(([key, label]) => {
    if (checkQualifiedName(key).length + checkLabelValue(label.value).length === 0) return [];
    delete pod.value.metadata.labels?.[key];
    const rule = "a label of Kubernetes has letters, digits, '-', '_' and '.'; an annotation has any text";
    return label.note(`is left out: ${rule}`);
  });
}

/** Containers of a pod share its ports: the same port, published twice, is one. */
function publishOnce(spec: Field<PodSpec>): SupportNote[] {
  if (spec.value.hostNetwork) return [];
  const published = new Map<string, number>();
  const ports = spec
    .field("containers")
    .items()
    .flatMap((container) => container.field("ports").items());
  return ports.flatMap((port) => {
    const { hostPort, hostIP = "", protocol, containerPort } = port.value;
    if (hostPort === undefined) return [];
    const key = `${protocol}/${hostIP}/${hostPort}`;
    const known = published.get(key);
    published.set(key, known ?? containerPort);
    if (known !== containerPort) return [];
    delete port.value.hostPort;
    return port.field("hostPort").note(`port ${hostPort} of the pod is published already: once is enough`);
  });
}

const containerFields = (spec: Field<PodSpec>): Field<Container>[] => [
  ...spec.field("initContainers").items(),
  ...spec.field("containers").items(),
];

/** Words of podman for a pull policy; two ask for newer images. */
const PULL_POLICIES = ["missing", "ifmissing", "newer", "ifnewer"];
const NEWER_IMAGES = `for newer images set the annotation ${IMAGE_UPDATE_ANNOTATION}: digest`;

/** `protocol: tcp`, `restartPolicy: always`, `imagePullPolicy: ifnotpresent` or `missing`. */
function correctCase(spec: Field<PodSpec>): SupportNote[] {
  const notes: SupportNote[] = [];
  const correct = <T extends object>(object: Field<T>, name: keyof T & string, values: readonly string[]) => {
    const written = object.value[name] as string | undefined;
    const word = written?.toLowerCase() ?? "";
    const isOfPodman = name === "imagePullPolicy" && PULL_POLICIES.includes(word);
    const value = isOfPodman ? "IfNotPresent" : values.find((known) => known.toLowerCase() === word);
    if (value === undefined || value === written) return;
    Object.assign(object.value, { [name]: value });
    const advice = isOfPodman && word.includes("new") ? `; ${NEWER_IMAGES}` : "";
    notes.push(object.field(name).note(`${written} is read as ${value}, as Kubernetes writes it${advice}`));
  };
  correct(spec, "restartPolicy", ["Always", "OnFailure", "Never"]);
  for (const container of containerFields(spec)) {
    correct(container, "imagePullPolicy", ["Always", "IfNotPresent", "Never"]);
    for (const port of container.field("ports").items()) correct(port, "protocol", ["TCP", "UDP", "SCTP"]);
  }
  return notes;
}

/** `ports: [{hostPort: 80}]` is port 80 of the container for podman, and a port that has neither is none. */
function addContainerPorts(spec: Field<PodSpec>): SupportNote[] {
  return containerFields(spec).flatMap((container) => {
    const ports = container.field("ports").items();
    const notes = ports.flatMap((port) => {
      const { containerPort, hostPort, name } = port.value;
      if (containerPort !== 0 || (!hostPort && name !== undefined)) return [];
      if (!hostPort) return port.note("has no containerPort, which Kubernetes requires: it is left out");
      port.value.containerPort = hostPort;
      return port.note(`has no containerPort, which Kubernetes requires: it is read as ${hostPort}, the hostPort`);
    });
    const isPort = ({ containerPort, name }: ContainerPort) => containerPort !== 0 || name !== undefined;
    if (notes.length > 0) container.value.ports = container.value.ports?.filter(isPort);
    return notes;
  });
}

/** Podman restarts the containers of a workload as its pods say. Changes the template in place. */
export function restartAlways(template: Field<Pod>): SupportNote[] {
  const { spec } = template.value;
  const { restartPolicy } = spec;
  if (restartPolicy !== "Never" && restartPolicy !== "OnFailure") return [];
  spec.restartPolicy = "Always";
  const message = `${restartPolicy} is read as Always, the only one that Kubernetes has here: write a Job for a program that ends`;
  return [template.field("spec").field("restartPolicy").note(message)].flat();
}

/** Names of containers, pods and volumes of an engine. */
const ENGINE_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,252}$/;

/** Whether only the rules of Kubernetes refuse a name: upper case letters, `_`, `.`, or more than 63 characters. */
export const isEngineName = (name: string): boolean => ENGINE_NAME.test(name);

/**
 * Renames an object whose name Kubernetes refuses and podman accepts: `pod_A` becomes `pod-a`.
 * Changes the metadata in place.
 */
export function renameObject(metadata: Field<ObjectMeta>): SupportNote[] {
  const name = metadata.value.name ?? "";
  if (checkDnsSubdomain(name).length === 0 || !isEngineName(name)) return [];
  const renamed = toReadableName(name, /[^a-z0-9.]+/g);
  if (checkDnsSubdomain(renamed).length > 0) return [];
  metadata.value.name = renamed;
  const message = `is not a DNS name, which Kubernetes requires: the object is named ${JSON.stringify(renamed)} here`;
  return [metadata.field("name").note(message)];
}

/** References in the pod follow. */
function renameVolumes(spec: Field<PodSpec>): SupportNote[] {
  const { renamed, notes } = renameItems(spec.field("volumes").items(), "volume");
  const nameOf = (name: string) => renamed.get(name) ?? name;
  if (renamed.size === 0) return notes;
  for (const container of [...containersOf(spec.value), ...(spec.value.ephemeralContainers ?? [])]) {
    for (const mount of container.volumeMounts ?? []) mount.name = nameOf(mount.name);
    for (const device of container.volumeDevices ?? []) device.name = nameOf(device.name);
    for (const { valueFrom } of container.env ?? []) {
      const file = valueFrom?.fileKeyRef;
      if (file) file.volumeName = nameOf(file.volumeName);
    }
  }
  return notes;
}

/** References in the pod follow. */
function renameContainers(spec: Field<PodSpec>): SupportNote[] {
  const lists = (["initContainers", "containers"] as const).map((list) =>
    renameItems(spec.field(list).items(), "container"),
  );
  const renamed = new Map(lists.flatMap((list) => [...list.renamed]));
  const { volumes = [] } = spec.value;
  const references = [
    ...containersOf(spec.value).flatMap(({ env = [] }) => env.map(({ valueFrom }) => valueFrom?.resourceFieldRef)),
    ...volumes.flatMap(({ downwardAPI }) => downwardAPI?.items?.map((item) => item.resourceFieldRef) ?? []),
  ];
  for (const reference of references) {
    const name = reference?.containerName;
    if (reference && name !== undefined) reference.containerName = renamed.get(name) ?? name;
  }
  return lists.flatMap(({ notes }) => notes);
}

/** A host name that podman accepts, such as the name of its pod: `pod_A` becomes `pod-a`. */
function renameHost(spec: Field<PodSpec>): SupportNote[] {
  const { hostname } = spec.value;
  if (hostname === undefined || checkDnsLabel(hostname).length === 0 || !isEngineName(hostname)) return [];
  const renamed = toReadableName(hostname, /[^a-z0-9]+/g);
  if (checkDnsLabel(renamed).length > 0) return [];
  spec.value.hostname = renamed;
  return [spec.field("hostname").note(`is read as ${renamed}: host names of Kubernetes are DNS labels`)];
}

/** Names of ports with capitals, as podman accepts them, in lower case. References in the pod follow. */
function renamePorts(spec: Field<PodSpec>): SupportNote[] {
  const notes: SupportNote[] = [];
  for (const container of spec.field("containers").items()) {
    const renamed = new Map<string, string>();
    for (const port of container.field("ports").items()) {
      const written = port.value.name;
      const name = written?.toLowerCase();
      if (written === undefined || name === undefined || name === written || checkPortName(name).length > 0) continue;
      renamed.set(written, name);
      port.value.name = name;
      notes.push(port.field("name").note(`is read as ${name}: names of ports are lower case in Kubernetes`));
    }
    const { livenessProbe, readinessProbe, startupProbe, lifecycle } = container.value;
    for (const handler of [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop]) {
      for (const target of [handler?.httpGet, handler?.tcpSocket]) {
        if (target) target.port = renamed.get(String(target.port)) ?? target.port;
      }
    }
  }
  return notes;
}

/** Gives items of a list DNS labels as names. Changes the items in place. */
function renameItems(items: readonly Field<{ name: string }>[], what: "volume" | "container") {
  const taken = new Set(items.map(({ value }) => value.name));
  const renamed = new Map<string, string>();
  const notes: SupportNote[] = [];
  for (const item of items) {
    const { name } = item.value;
    if (checkDnsLabel(name).length === 0 || !isEngineName(name)) continue;
    const label = toLabel(name, taken, what === "volume");
    if (taken.has(label)) continue;
    taken.add(label);
    renamed.set(name, label);
    item.value.name = label;
    const message = `is not a DNS label, which Kubernetes requires: the ${what} is named ${JSON.stringify(label)} here`;
    notes.push(item.field("name").note(message));
  }
  return { renamed, notes };
}

const toReadableName = (name: string, separators: RegExp) =>
  name
    .toLowerCase()
    .replace(separators, "-")
    .replace(/^[-.]+|[-.]+$/g, "");

/** A readable DNS label, with a hash of the name where it would not be unique. */
function toLabel(name: string, taken: ReadonlySet<string>, isHashed: boolean): string {
  const readable = toReadableName(name, /[^a-z0-9]+/g);
  if (!isHashed && !taken.has(readable) && checkDnsLabel(readable).length === 0) return readable;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 8);
  return `${readable.slice(0, 63 - hash.length - 1).replace(/-+$/, "")}-${hash}`;
}
