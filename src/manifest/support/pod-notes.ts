import {
  ANNOTATION_PREFIX,
  IMAGE_UPDATE_ANNOTATIONS,
  POD_ANNOTATIONS,
  requiredFormat,
} from "../../base/api/annotations.ts";
import { CAPABILITIES, isCapability } from "../../base/api/container.ts";
import type { Container, Pod, PodSpec, Probe, ResourceRequirements, Volume } from "../../base/api/pod.ts";
import { parseQuantity, quantityToWhole } from "../../base/api/quantity.ts";
import { didYouMean, nearestName } from "../../base/text/nearest-name.ts";
import { shorten } from "../decode/decode.ts";
import type { Field, SupportNote } from "../field.ts";
import { FIELD_SUPPORT, type FieldSupport } from "./field-support.ts";

/**
 * Everything that is valid in a defaulted pod but has no effect, is not possible here, or is probably not intended.
 * @param pod its identity is not yet filled in
 * @param isLenient fields without which a pod runs are ignored instead of refused
 */
export function findPodNotes(pod: Field<Pod>, isLenient: boolean): SupportNote[] {
  const spec = pod.field("spec");
  const containers = [...spec.field("initContainers").items(), ...spec.field("containers").items()];
  return [
    ...findUnsupported(pod, isLenient),
    ...[...containers, spec].flatMap((owner) => findFractionalBytes(owner as Field<ResourceOwner>)),
    ...findForeignAnnotations(pod.field("metadata").field("annotations")),
    ...findOwnAnnotations(pod.field("metadata").field("annotations"), pod.value.spec),
    ...containers.flatMap(findShellCommands),
    ...containers.flatMap(findPortNames),
    ...containers.flatMap(findWhatEnginesRefuse),
    ...spec.field("volumes").items().flatMap(findDecimalMode),
    ...containers.flatMap(findImageExpression),
  ];
}

/** Rules that produce findings, with split paths. */
const RULES = FIELD_SUPPORT.filter(
  ({ quiet, level, when }) => !quiet && (level !== "partly" || when !== undefined),
).map((support) => ({ support, steps: support.path.split(".") }));

/** Fields without effect, or that are refused, by the table of {@link FIELD_SUPPORT}. */
const findUnsupported = (pod: Field<Pod>, isLenient: boolean): SupportNote[] =>
  RULES.flatMap(({ support, steps }) =>
    fieldsAt(pod as Field, steps)
      .filter(({ value }) => support.when?.(value, pod.value) ?? true)
      .map((field) => noteOf(field, support, isLenient)),
  );

function noteOf(field: Field, { level, note, strictOnly }: FieldSupport, isLenient: boolean): SupportNote {
  const isRefused = level === "refused" && !(strictOnly && isLenient);
  if (isRefused) return field.note(`cannot be used here: ${note}`, "unsupported");
  return field.note(level === "partly" ? note : `has no effect here: ${note}`);
}

/** The fields of a path that are there; `[]` after a name is every item. */
function fieldsAt(field: Field, steps: readonly string[], index = 0): Field[] {
  const step = steps[index];
  if (step === undefined) return [field];
  const isList = step.endsWith("[]");
  const name = isList ? step.slice(0, -2) : step;
  const owner = field as Field<Record<string, unknown>>;
  if ((owner.value[name] ?? undefined) === undefined) return [];
  const child = owner.field(name);
  return isList ? child.items().flatMap((item) => fieldsAt(item, steps, index + 1)) : fieldsAt(child, steps, index + 1);
}

/** Annotations that podman and cri-o write and read. */
export const FOREIGN_ANNOTATION =
  /^(?:io\.podman\.annotations\.|io\.kubernetes\.cri-o\.|org\.systemd\.property\.|bind-mount-options)/;

type Annotations = Field<Readonly<Record<string, string>> | undefined>;

function findForeignAnnotations(annotations: Annotations): SupportNote[] {
  const [first, ...others] = annotations.entries().filter(([name]) => FOREIGN_ANNOTATION.test(name));
  if (first === undefined) return [];
  const more = others.length > 0 ? ` (and ${others.length} more of podman)` : "";
  const instead = "podman reads it; use the fields of the pod, e.g. securityContext";
  return [first[1].note(`has no effect here${more}: ${instead}`)];
}

/** Annotations of kubelet-ts that are misspelled or malformed. */
function findOwnAnnotations(annotations: Annotations, spec: PodSpec): SupportNote[] {
  const names = POD_ANNOTATIONS.map(({ name }) => name);
  return annotations.entries().flatMap(([key, annotation]) => {
    if (!key.startsWith(ANNOTATION_PREFIX)) return [];
    const format = requiredFormat(key, annotation.value);
    if (format !== undefined) {
      return annotation.note(`must be ${format} (found ${JSON.stringify(annotation.value.slice(0, 60))})`);
    }
    if (names.includes(key)) return findWrongNames(key, annotation, spec);
    const ofOurs = (name: string) => name.slice(ANNOTATION_PREFIX.length);
    const nearest = nearestName(ofOurs(key), names.map(ofOurs));
    const hint =
      nearest === undefined
        ? `the annotations are ${names.join(", ")}`
        : `did you mean "${ANNOTATION_PREFIX}${nearest}"?`;
    return annotation.note(`there is no such annotation; ${hint}`);
  });
}

/** Annotations of pods at their workload, which only those of image updates may be. @param template of the pods */
export function findMisplacedAnnotations(annotations: Annotations, template: Field<Pod>): SupportNote[] {
  const place = template.path.child("metadata").child("annotations");
  return annotations.entries().flatMap(([name, annotation]) => {
    const isOfPods = POD_ANNOTATIONS.some((known) => known.name === name) && !IMAGE_UPDATE_ANNOTATIONS.includes(name);
    return isOfPods ? [annotation.note(`has no effect here: write it below ${place}`)] : [];
  });
}

/** Volumes and containers that an annotation names in vain: the pod lacks them, or the volume is of another kind. */
function findWrongNames(key: string, annotation: Field<string>, { volumes = [], ...spec }: PodSpec): SupportNote[] {
  const known = POD_ANNOTATIONS.find(({ name }) => name === key);
  const missing = (what: string, name: string, names: readonly string[]) => {
    const nearest = nearestName(name, names);
    const hint = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
    return annotation.note(`the pod has no ${what} "${name}"${hint}`);
  };
  const { named, sources } = known?.volumes ?? { named: () => [], sources: [] };
  const ofVolumes = named(annotation.value).flatMap((name) => {
    const volume = volumes.find((one) => one.name === name);
    if (!volume) return missing("volume", name, namesOf(volumes));
    if (sources.some((source) => volume[source])) return [];
    return annotation.note(`has no effect on volume "${name}", which is no ${sources.join(" or ")}`);
  });
  const containers = namesOf([...(spec.initContainers ?? []), ...spec.containers]);
  const unknown = (known?.containersIn?.(annotation.value) ?? []).filter((name) => !containers.includes(name));
  return [...ofVolumes, ...unknown.map((name) => missing("container", name, containers))];
}

const namesOf = (all: readonly { name: string }[]) => all.map(({ name }) => name);

/** Images that are expressions of a template in quotes, which are text for YAML, or variables of a shell. */
function findImageExpression(container: Field<Container>): SupportNote[] {
  const { image = "" } = container.value;
  const message = image.includes("{{")
    ? "holds an expression of a template: render the template first, e.g. with `helm template NAME CHART`"
    : /\$(?:\{|[A-Za-z_])/.test(image)
      ? "holds a variable, which nothing replaces: write its value, e.g. with `envsubst < FILE`"
      : undefined;
  return message === undefined ? [] : [container.field("image").note(message, "unsupported")];
}

/** Modes that are usual when they are read as octal, and not when they are decimal: `400` is 0620. */
const DECIMAL_MODES = [400, 440, 444];

/** Warns of a mode that lacks the 0 in front, by which YAML knows octal numbers. */
function findDecimalMode(volume: Field<Volume>): SupportNote[] {
  return (["configMap", "secret", "projected", "downwardAPI"] as const).flatMap((source) => {
    const mode = (volume.field(source) as Field<{ defaultMode?: number } | undefined>).field("defaultMode");
    if (mode.value === undefined || !DECIMAL_MODES.includes(mode.value)) return [];
    return mode.note(
      `${mode.value} is decimal, and 0${mode.value.toString(8)} in octal: write 0${mode.value}, if that is meant`,
    );
  });
}

const COUNTS_BYTES = /^(memory|ephemeral-storage|hugepages-.*)$/;

interface ResourceOwner {
  resources?: ResourceRequirements | undefined;
}

/**
 * Warns of fractions of bytes: `memory: 100m` is valid but means a tenth of a byte, and the engine's error (`cannot
 * allocate memory`) does not point to it. Source: upstream's warning of fractional byte values.
 */
function findFractionalBytes(owner: Field<ResourceOwner>): SupportNote[] {
  const resources = owner.field("resources");
  return (["limits", "requests"] as const).flatMap((list) =>
    resources
      .field(list)
      .entries()
      .flatMap(([name, field]) => {
        const text = field.value;
        if (!COUNTS_BYTES.test(name) || !/[mun]$/.test(text) || !parseQuantity(text)) return [];
        // The request was filled in from the limit.
        if (list === "requests" && resources.value?.limits?.[name] === text) return [];
        const whole = quantityToWhole(text);
        // 1.1Mi is a fraction as well: 1153433600m.
        if (whole >= 1024) return [];
        const amount = text.slice(0, -1);
        const meant = `${amount}M is megabytes, ${amount}Mi mebibytes`;
        return field.note(`counts as ${whole} byte${whole === 1 ? "" : "s"}: "${text}" is a fraction; ${meant}`);
      }),
  );
}

const SHELLS = /(?:^|\/)(?:sh|bash|ash|dash|ksh|zsh|busybox|tini|dumb-init|env|su|sudo|gosu|su-exec)$/;
const OPERATORS = new Set(["&&", "||", "|", ";", ">", ">>", "<", "2>&1", "&"]);

/** Warns of commands that need a shell but have none: `command: ["a && b"]` is one program with that name. */
function findShellCommands(container: Field<Container>): SupportNote[] {
  const lifecycle = container.field("lifecycle");
  const commands: Field<string[] | undefined>[] = [
    container.field("command"),
    ...PROBES.map((name) => container.field(name).field("exec").field("command")),
    ...HOOKS.map((name) => lifecycle.field(name).field("exec").field("command")),
  ];
  return commands.flatMap((command) => {
    const message = describeMistake(command.value);
    return message === undefined ? [] : command.note(message);
  });
}

/** Warns of probes and hooks of a port by a name that no port of their container has: they fail each time. */
function findPortNames(container: Field<Container>): SupportNote[] {
  const names = (container.value.ports ?? []).flatMap(({ name }) => name ?? []);
  const handlers = [
    ...PROBES.map((name) => container.field(name)),
    ...HOOKS.map((name) => container.field("lifecycle").field(name)),
  ] as Field<Pick<Probe, "httpGet" | "tcpSocket"> | undefined>[];
  return handlers.flatMap((handler) =>
    (["httpGet", "tcpSocket"] as const).flatMap((kind) => {
      const port = handler.field(kind).field("port") as Field<number | string | undefined>;
      const { value } = port;
      if (typeof value !== "string" || value === "" || names.includes(value)) return [];
      const nearest = nearestName(value, names);
      const hint = nearest === undefined ? "; write its number" : `; did you mean "${nearest}"?`;
      return port.note(`no port of the container has the name "${value}"${hint}`);
    }),
  );
}

/** Warns of what Kubernetes accepts, and no engine: the container would never be created. */
function findWhatEnginesRefuse(container: Field<Container>): SupportNote[] {
  const directory = container.field("workingDir");
  const isRelative = directory.value !== undefined && /^[^/]/.test(directory.value);
  const capabilities = container.field("securityContext").field("capabilities");
  const names = [...capabilities.field("add").items(), ...capabilities.field("drop").items()];
  return [
    ...(isRelative ? [directory.note("must be an absolute path: the engine refuses another one")] : []),
    ...names
      .filter(({ value }) => !isCapability(value))
      .map((name) => name.note(`there is no such capability${didYouMean(name.value, CAPABILITIES)}`)),
  ];
}

const PROBES = ["livenessProbe", "readinessProbe", "startupProbe"] as const;
const HOOKS = ["postStart", "preStop"] as const;

function describeMistake(command: readonly string[] | undefined): string | undefined {
  const program = command?.[0];
  if (command === undefined || program === undefined) return undefined;
  if (/\s/.test(program.trim()) && command.length === 1) {
    const shell = `["sh", "-c", ${JSON.stringify(shorten(program))}]`;
    return `is one program with the name ${JSON.stringify(shorten(program))}: no shell splits it; write ${shell}, or one item per argument`;
  }
  const operator = command.slice(1).find((word) => OPERATORS.has(word));
  if (operator === undefined || SHELLS.test(program)) return undefined;
  return `passes "${operator}" to ${shorten(program)} as an argument: no shell interprets it; write ["sh", "-c", "…"]`;
}
