import type { ActionResult, PodRow } from "./wire.ts";

export type PodAction = "restart" | "delete";

/** Kinds that start another pod in place of one that is deleted. */
const REPLACED = /^(Deployment|ReplicaSet|StatefulSet|DaemonSet) /;

/**
 * The question before an action: what it costs, and how what is lost comes back. Without an `action` there is nothing to
 * decide: the text says why. Pure.
 */
export function describeAction(
  action: PodAction,
  { name, owner, source }: Pick<PodRow, "name" | "owner" | "source">,
): { action: string | undefined; text: string } {
  if (action === "restart") {
    return {
      action: "Restart",
      text: `Restart all containers of ${name}? They are stopped and started again by the kubelet. It does not serve meanwhile, files outside its volumes are lost, and its IP address may change.`,
    };
  }
  if (owner === "" && source !== "submitted" && source !== "") {
    const what = /^https?:/.test(source) ? "manifest" : "file";
    return {
      action: undefined,
      text: `${name} comes from ${source}: to delete it, remove it from that ${what}. The kubelet then stops it.`,
    };
  }
  return {
    action: "Delete",
    text: `Delete ${name}? Its containers are stopped and its emptyDir volumes are lost. ${describeReturn(owner)}`,
  };
}

function describeReturn(owner: string): string {
  if (REPLACED.test(owner)) return `${owner} starts another pod in its place; to end that, scale or delete ${owner}.`;
  if (owner.startsWith("Job ")) return `${owner} starts another pod if it is not complete.`;
  if (owner !== "") return `It belongs to ${owner}.`;
  return "It comes back only if its manifest is applied again.";
}

/**
 * The effects of an apply, for the question before it. Pure.
 * @param checked answer of the dry run: a line for each object
 * @param compared answer of the comparison: lines `pod "default/web"` and `  => container app restarts`
 */
export function describePlan(checked: string, compared: ActionResult): string {
  const objects = checked.replaceAll(" (server dry run)", "");
  if (!compared.ok) return `${objects}\n\nWhat restarts is not known: ${compared.message}`;
  // The comparison takes a new pod for one of a file, whose name gets that of the node.
  const created = [...objects.matchAll(/^pod\/(\S+) created$/gm)].map(([, name]) => name);
  let subject = "";
  const effects: string[] = [];
  for (const line of compared.message.split("\n")) {
    if (line.startsWith("  => ")) effects.push(`${subject}: ${line.slice(5)}`);
    else if (!line.startsWith("  ")) {
      const [, namespace, name = ""] = /^pod "([^/]*)\/([^"]*)"$/.exec(line) ?? [];
      const own = created.includes(name) ? undefined : created.find((known) => name.startsWith(`${known}-`));
      subject = own === undefined ? line : `pod "${namespace}/${own}"`;
    }
  }
  return effects.length === 0 ? objects : `${objects}\n\n${effects.join("\n")}`;
}
