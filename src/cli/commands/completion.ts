import type { Pod } from "../../base/api/pod.ts";
import { didYouMean } from "../../base/text/nearest-name.ts";
import { ApiClient } from "../client/api-client.ts";
import { findPod, inScope, namespaceOf } from "../client/choose-pod.ts";
import { listKubelets, removeProxies } from "../client/find-kubelet.ts";
import { loadServedKinds } from "../client/object-targets.ts";
import { openReader } from "../client/open-reader.ts";
import {
  type Candidate,
  type Completion,
  completeWords,
  renderCandidates,
  renderCompletionScript,
  SHELLS,
  type Shell,
} from "../completion.ts";
import { type CommandIo, type CommandRequest, UsageError } from "../sub-command.ts";

/** `kubelet-ts completion bash|zsh|fish`. Returns the exit code. */
export function runCompletion({ positionals }: CommandRequest, io: CommandIo): number {
  const [shell, ...rest] = positionals;
  if (shell === undefined || rest.length > 0 || !SHELLS.includes(shell as Shell)) {
    throw new UsageError(`name one shell: ${SHELLS.join(", ")}${didYouMean(shell ?? "", SHELLS)}`);
  }
  io.stdout(renderCompletionScript(shell as Shell));
  return 0;
}

/** A kubelet or an engine that hangs must not hang the shell. */
const NAMES_LIMIT_MS = 2500;

/** The hidden command the scripts call with the words typed so far. It never fails: without an answer there are no names. */
export async function runComplete(
  words: readonly string[],
  context: Parameters<typeof completeWords>[1],
  io: Pick<CommandIo, "stdout">,
): Promise<number> {
  const completion = completeWords(words, context);
  const names =
    completion.names === undefined
      ? []
      : await Promise.race([namesOf(completion, words).catch(() => []), Bun.sleep(NAMES_LIMIT_MS).then(() => [])]);
  const known = new Set(completion.candidates.map(({ word }) => word));
  const candidates = [...completion.candidates, ...names.filter(({ word }) => !known.has(word))];
  io.stdout(renderCandidates({ ...completion, candidates }));
  return 0;
}

/** From the kubelet that the flags typed so far name; pods also from the engine while none runs. */
async function namesOf(completion: Completion, words: readonly string[]): Promise<Candidate[]> {
  removeProxies();
  const { names, positionals, command, typed: word } = completion;
  const request = { value: (flag: string) => typedValue(words, FLAGS[flag] ?? [`--${flag}`]) } as CommandRequest;
  if (names === "kubelet") {
    return listKubelets().map(({ nodeName, rootDir }) => ({ word: nodeName, description: rootDir }));
  }
  const namespace = request.value("namespace");
  const slash = word.indexOf("/");
  if ((names === "kind" || names === "name" || names === "pod") && slash > 0) {
    const kind = word.slice(0, slash);
    return (await objectsOf(request, kind, namespace)).map((it) => ({ ...it, word: `${kind}/${it.word}` }));
  }
  switch (names) {
    case "kind":
      return (await loadServedKinds()).map(({ plural, kind }) => ({ word: plural, description: kind }));
    case "name":
      return await objectsOf(request, positionals[0] ?? "pods", namespace);
    case "pod":
      return await objectsOf(request, "pods", namespace);
    case "place":
      return (await objectsOf(request, "pods", namespace)).map((it) => ({ ...it, word: `${it.word}:` }));
    case "namespace":
      return [...new Set((await podsOf(request)).map(namespaceOf))].map((name) => ({ word: name, description: "" }));
    case "container": {
      const name = positionals[command?.objects === undefined ? 0 : 1];
      const pod = name === undefined ? undefined : findPod(await podsOf(request), name, { namespace });
      if (!pod || "problem" in pod) return [];
      return [
        ...pod.spec.containers.map((container) => ({ word: container.name, description: container.image ?? "" })),
        ...(pod.spec.initContainers ?? []).map((container) => ({
          word: container.name,
          description: "init container",
        })),
      ];
    }
    default:
      return [];
  }
}

/** Short forms of the flags that say which names are meant. */
const FLAGS: Readonly<Record<string, string[]>> = {
  server: ["--server", "-s"],
  namespace: ["--namespace", "-n"],
};

const PODS = ["pods", "pod", "po"];

/** Names of objects of a kind. */
async function objectsOf(request: CommandRequest, kind: string, namespace: string | undefined): Promise<Candidate[]> {
  if (PODS.includes(kind.toLowerCase())) {
    return inScope(await podsOf(request), { namespace }).map(({ metadata, status }) => ({
      word: metadata.name ?? "",
      description: status?.phase ?? "",
    }));
  }
  const api = await ApiClient.open(request);
  const resources = await api.findResources(kind);
  const lists = await Promise.all(resources.map((resource) => api.list(resource, namespace)));
  return lists.flat().map(({ metadata }) => ({ word: metadata.name ?? "", description: "" }));
}

const podsOf = async (request: CommandRequest): Promise<readonly Pod[]> => (await openReader(request)).pods();

/** The last value of a flag on an unfinished command line; bash makes `--flag=value` three words. */
function typedValue(words: readonly string[], flags: readonly string[]): string | undefined {
  let found: string | undefined;
  for (const [index, word] of words.slice(0, -1).entries()) {
    const [flag = "", attached] = word.split(/=(.*)/s, 2);
    if (!flags.includes(flag)) continue;
    const next = words[index + 1];
    found = attached ?? (next === "=" ? words[index + 2] : next);
  }
  return found;
}
