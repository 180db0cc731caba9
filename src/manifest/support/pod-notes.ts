import type { Container, Pod, ResourceRequirements } from "../../base/api/pod.ts";
import { parseQuantity, quantityToWhole } from "../../base/api/quantity.ts";
import type { FieldPath } from "../field-path.ts";
import { findUnsupported, type SupportNote } from "./find-unsupported.ts";
import { findAnnotationNotes } from "./pod-annotations.ts";

/**
 * Everything that is valid in a pod but has no effect, is not possible here, or is probably not intended.
 * @param path of the pod in its document
 * @param isLenient fields without which a pod runs are ignored instead of refused
 */
export const findPodNotes = (pod: Pod, path: FieldPath, isLenient: boolean): SupportNote[] => [
  ...findUnsupported(pod, path, isLenient),
  ...findFractionalBytes(pod, path),
  ...findAnnotationNotes(pod, path),
  ...findShellCommands(pod, path),
  ...findImageTemplates(pod, path),
];

/** Images that are expressions of a template in quotes, which are text for YAML, or variables of a shell. */
const findImageTemplates = ({ spec }: Pod, path: FieldPath): SupportNote[] =>
  (["initContainers", "containers"] as const).flatMap((list) =>
    (spec[list] ?? []).flatMap(({ image }, index): SupportNote[] => {
      const message = describeExpression(image ?? "");
      if (message === undefined) return [];
      return [{ code: "unsupported", path: path.child("spec").child(list).index(index).child("image"), message }];
    }),
  );

function describeExpression(image: string): string | undefined {
  if (image.includes("{{")) {
    return "holds an expression of a template: render the template first, e.g. with `helm template NAME CHART`";
  }
  return /\$(?:\{|[A-Za-z_])/.test(image)
    ? "holds a variable, which nothing replaces: write its value, e.g. with `envsubst < FILE`"
    : undefined;
}

const COUNTS_BYTES = /^(memory|ephemeral-storage|hugepages-.*)$/;

/**
 * Warns of fractions of bytes: `memory: 100m` is valid but means a tenth of a byte, and the engine's error (`cannot
 * allocate memory`) does not point to it. Source: upstream's warning of fractional byte values.
 * @param path of the pod in its document
 */
function findFractionalBytes({ spec }: Pod, path: FieldPath): SupportNote[] {
  const at = path.child("spec");
  const ofContainers = (["initContainers", "containers"] as const).flatMap((list) =>
    (spec[list] ?? []).flatMap(({ resources }, index) =>
      findIn(resources, at.child(list).index(index).child("resources")),
    ),
  );
  return [...ofContainers, ...(spec.resources ? findIn(spec.resources, at.child("resources")) : [])];
}

function findIn(resources: ResourceRequirements, path: FieldPath): SupportNote[] {
  return (["limits", "requests"] as const).flatMap((list) =>
    Object.entries(resources[list] ?? {}).flatMap(([name, text]): SupportNote[] => {
      if (!COUNTS_BYTES.test(name) || !/[mun]$/.test(text) || !parseQuantity(text)) return [];
      // The request was filled in from the limit.
      if (list === "requests" && resources.limits?.[name] === text) return [];
      const whole = quantityToWhole(text);
      // 1.1Mi is a fraction as well: 1153433600m.
      if (whole >= 1024) return [];
      const amount = text.slice(0, -1);
      const message = `counts as ${whole} byte${whole === 1 ? "" : "s"}: "${text}" is a fraction; ${amount}M is megabytes, ${amount}Mi mebibytes`;
      return [{ code: "ignored", path: path.child(list).key(name), message }];
    }),
  );
}

const SHELLS = /(?:^|\/)(?:sh|bash|ash|dash|ksh|zsh|busybox|tini|dumb-init|env|su|sudo|gosu|su-exec)$/;
const OPERATORS = new Set(["&&", "||", "|", ";", ">", ">>", "<", "2>&1", "&"]);

/**
 * Warns of commands that need a shell but have none: `command: ["a && b"]` is one program with that name.
 * @param path of the pod in its document
 */
function findShellCommands({ spec }: Pod, path: FieldPath): SupportNote[] {
  return (["initContainers", "containers"] as const).flatMap((list) =>
    (spec[list] ?? []).flatMap((container, index) =>
      commandsOf(container).flatMap(([field, command]): SupportNote[] => {
        const message = describeMistake(command);
        if (message === undefined) return [];
        return [{ code: "ignored", path: path.child("spec").child(list).index(index).child(field), message }];
      }),
    ),
  );
}

function commandsOf(container: Container): [field: string, command: readonly string[] | undefined][] {
  const probes = (["livenessProbe", "readinessProbe", "startupProbe"] as const).map(
    (name): [string, readonly string[] | undefined] => [`${name}.exec.command`, container[name]?.exec?.command],
  );
  return [
    ["command", container.command],
    ...probes,
    ["lifecycle.postStart.exec.command", container.lifecycle?.postStart?.exec?.command],
    ["lifecycle.preStop.exec.command", container.lifecycle?.preStop?.exec?.command],
  ];
}

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

const shorten = (text: string) => (text.length > 60 ? `${text.slice(0, 57)}...` : text);
