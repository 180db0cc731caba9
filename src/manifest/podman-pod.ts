import type { Pod } from "../base/api/pod.ts";
import { containersOf } from "../base/model/pod-containers.ts";
import type { FieldPath } from "./field-path.ts";
import { renameHost, renameParts, renamePorts } from "./podman-names.ts";
import type { SupportNote } from "./support/find-unsupported.ts";
import { FOREIGN_ANNOTATION } from "./support/pod-annotations.ts";
import { checkLabelValue, checkQualifiedName } from "./validate/names.ts";

/**
 * Accepts what only Kubernetes refuses of the pods that `podman kube generate` writes and `podman kube play` reads.
 * Changes the pod in place.
 * @param path of the pod in its document
 */
export const adaptPodmanPod = (pod: Pod, path: FieldPath): SupportNote[] => [
  ...removeAnnotations(pod, path),
  ...removeLabels(pod, path),
  ...renameParts(pod, path),
  ...renamePorts(pod, path),
  ...renameHost(pod, path),
  ...correctCase(pod, path.child("spec")),
  ...publishOnce(pod, path.child("spec")),
];

/**
 * Podman 3.4 to 4.3 puts paths into keys: `bind-mount-options:/home/x/data`. Annotations of a container end with its name:
 * `run.oci.keep_original_groups/web`, `example.com/a/web`.
 */
function removeAnnotations({ metadata, spec }: Pod, path: FieldPath): SupportNote[] {
  const { annotations } = metadata;
  if (!annotations) return [];
  const containers = containersOf(spec).map(({ name }) => `/${name}`);
  const isOfPodman = (key: string) => FOREIGN_ANNOTATION.test(key) || containers.some((end) => key.endsWith(end));
  const isMalformed = (key: string) => checkQualifiedName(key.toLowerCase()).length > 0;
  const names = Object.keys(annotations).filter((key) => isOfPodman(key) && isMalformed(key));
  return names.map((name) => {
    delete annotations[name];
    const message = "has no effect here and is left out: Kubernetes has no such names of annotations; podman reads it";
    return { code: "ignored", path: path.child("metadata").child("annotations").key(name), message };
  });
}

/** No selector can ask for a label that Kubernetes has no such name or value for. */
function removeLabels({ metadata }: Pod, path: FieldPath): SupportNote[] {
  const { labels } = metadata;
  if (!labels) return [];
  const isMalformed = ([key, value]: [string, string]) =>
    checkQualifiedName(key).length > 0 || checkLabelValue(value).length > 0;
  return Object.entries(labels)
    .filter(isMalformed)
    .map(([name]) => {
      delete labels[name];
      const message =
        "is left out: a label of Kubernetes has letters, digits, '-', '_' and '.'; an annotation has any text";
      return { code: "ignored", path: path.child("metadata").child("labels").key(name), message };
    });
}

/** Containers of a pod share its ports: the same port, published twice, is one. */
function publishOnce({ spec }: Pod, path: FieldPath): SupportNote[] {
  const notes: SupportNote[] = [];
  if (spec.hostNetwork) return notes;
  const published = new Map<string, number>();
  for (const [index, { ports = [] }] of spec.containers.entries()) {
    for (const [position, port] of ports.entries()) {
      if (port.hostPort === undefined) continue;
      const key = `${port.protocol}/${port.hostIP ?? ""}/${port.hostPort}`;
      const known = published.get(key);
      published.set(key, known ?? port.containerPort);
      if (known !== port.containerPort) continue;
      const at = path.child("containers").index(index).child("ports").index(position).child("hostPort");
      notes.push({
        code: "ignored",
        path: at,
        message: `port ${port.hostPort} of the pod is published already: once is enough`,
      });
      delete port.hostPort;
    }
  }
  return notes;
}

/** `protocol: tcp`, `restartPolicy: always`, `imagePullPolicy: ifnotpresent`. */
function correctCase({ spec }: Pod, path: FieldPath): SupportNote[] {
  const notes: SupportNote[] = [];
  const correct = <K extends string>(
    object: { [key in K]?: string | undefined },
    name: K,
    values: readonly string[],
    at: FieldPath,
  ) => {
    const written = object[name];
    const value = values.find((known) => known.toLowerCase() === written?.toLowerCase());
    if (value === undefined || value === written) return;
    object[name] = value as (typeof object)[K];
    notes.push({ code: "ignored", path: at.child(name), message: `is read as ${value}, as Kubernetes writes it` });
  };
  correct(spec, "restartPolicy", ["Always", "OnFailure", "Never"], path);
  for (const list of ["initContainers", "containers"] as const) {
    for (const [index, container] of (spec[list] ?? []).entries()) {
      const at = path.child(list).index(index);
      correct(container, "imagePullPolicy", ["Always", "IfNotPresent", "Never"], at);
      for (const [position, port] of (container.ports ?? []).entries()) {
        correct(port, "protocol", ["TCP", "UDP", "SCTP"], at.child("ports").index(position));
      }
    }
  }
  return notes;
}
