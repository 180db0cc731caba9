import type { Container, Pod } from "../../base/api/pod.ts";
import type { FieldPath } from "../field-path.ts";
import type { SupportNote } from "./find-unsupported.ts";

const SHELLS = /(?:^|\/)(?:sh|bash|ash|dash|ksh|zsh|busybox|tini|dumb-init|env|su|sudo|gosu|su-exec)$/;
const OPERATORS = new Set(["&&", "||", "|", ";", ">", ">>", "<", "2>&1", "&"]);

/**
 * Warns of commands that need a shell but have none: `command: ["a && b"]` is one program with that name.
 * @param path of the pod in its document
 */
export function findShellCommands({ spec }: Pod, path: FieldPath): SupportNote[] {
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
