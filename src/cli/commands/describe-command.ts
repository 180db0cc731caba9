import type { Pod } from "../../api/pod.ts";
import { findPod, inScope } from "../client/pod-lookup.ts";
import type { ViewIo } from "../command-io.ts";
import { describeNode } from "../print/describe-node.ts";
import { describePod } from "../print/describe-pod.ts";
import {
  openKubelet,
  requireNode,
  scopeOf,
  selectorOf,
  toCommand,
  UsageError,
  ViewError,
  type ViewRequest,
} from "../run-view.ts";
import { DESCRIBE } from "../view-commands.ts";
import { findObject } from "../view-flags.ts";

/** `kubelet-ts describe pod` and `describe node`. Returns the exit code. */
export async function runDescribe(request: ViewRequest, io: ViewIo): Promise<number> {
  const [written, ...more] = request.positionals;
  const [kind, first] = written?.split("/", 2) ?? [];
  const object = findObject(DESCRIBE, kind);
  if (typeof object !== "string") throw new UsageError(object.problem);
  const names = first ? [first, ...more] : more;
  const matches = selectorOf(request, names);
  const { api } = await openKubelet(request);
  const [pods, events] = await Promise.all([api.pods(), api.events()]);
  const all = { pods: pods!.value, events: events!.value };
  const times = { now: io.now(), offsetMinutes: io.offsetMinutes };
  if (object === "nodes") {
    const node = await api.node();
    requireNode(node, names);
    const own = all.events.filter(({ involvedObject }) => (involvedObject.kind as string) === "Node");
    io.stdout(describeNode(node, all.pods, own, times));
    return 0;
  }
  const scope = scopeOf(request);
  const found =
    names.length > 0
      ? names.map((name) => findPod(all.pods, name, scope))
      : inScope(all.pods, scope).filter(({ metadata }) => matches(metadata.labels ?? {}));
  const ofPod = ({ metadata }: Pod) => all.events.filter(({ involvedObject }) => involvedObject.uid === metadata.uid);
  const texts = found.flatMap((pod) => ("problem" in pod ? [] : describePod(pod, ofPod(pod), times)));
  io.stdout(texts.join("\n\n"));
  const problems = found.flatMap((pod) => ("problem" in pod ? pod.problem : []));
  if (problems.length > 0) throw new ViewError(problems.join("\n"));
  if (texts.length === 0) io.stderr("No resources found\n");
  return 0;
}

export const describeCommand = toCommand(DESCRIBE, runDescribe);
