import type { Pod } from "../../api/pod.ts";
import { KubeletApi } from "../client/kubelet-api.ts";
import { findPod, inScope } from "../client/pod-lookup.ts";
import type { CommandIo } from "../command-io.ts";
import { describeNode } from "../print/describe-node.ts";
import { describePod } from "../print/describe-pod.ts";
import {
  CommandError,
  type CommandRequest,
  findObject,
  openReader,
  requireNode,
  scopeOf,
  selectorOf,
} from "../sub-command.ts";

/** `kubelet-ts describe pod` and `describe node`. Returns the exit code. */
export async function runDescribe(request: CommandRequest, io: CommandIo): Promise<number> {
  const [written, ...more] = request.positionals;
  const [kind, first] = written?.split("/", 2) ?? [];
  const object = findObject(request.command, kind);
  const names = first ? [first, ...more] : more;
  const matches = selectorOf(request, names);
  const api = await openReader(request);
  // Events are known to a running kubelet alone.
  const events = await (api instanceof KubeletApi ? api.events() : undefined);
  const all = { pods: (await api.pods())!.value, events: events?.value ?? [] };
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
  if (problems.length > 0) throw new CommandError(problems.join("\n"));
  if (texts.length === 0) io.stderr("No resources found\n");
  return 0;
}
