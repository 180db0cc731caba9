import { nearestName } from "../../text/nearest-name.ts";
import { chooseRootDir } from "../client/default-context.ts";
import { findKubelet } from "../client/find-kubelet.ts";
import { KubeletApi } from "../client/kubelet-api.ts";
import { findPod, namespaceOf } from "../client/pod-lookup.ts";
import type { TextIo } from "../command-io.ts";
import {
  type Candidate,
  type Completion,
  completeWords,
  renderCandidates,
  renderCompletionScript,
  SHELLS,
  type Shell,
} from "../completion.ts";
import { type CommandRequest, removeProxies, UsageError } from "../sub-command.ts";

/** `kubelet-ts completion bash|zsh|fish`. Returns the exit code. */
export function runCompletion({ positionals }: CommandRequest, io: TextIo): number {
  const [shell, ...rest] = positionals;
  if (shell === undefined || rest.length > 0 || !SHELLS.includes(shell as Shell)) {
    const nearest = shell === undefined ? undefined : nearestName(shell, SHELLS);
    throw new UsageError(`name one shell: ${SHELLS.join(", ")}${nearest ? `; did you mean ${nearest}?` : ""}`);
  }
  io.stdout(renderCompletionScript(shell as Shell));
  return 0;
}

/** The hidden command the scripts call with the words typed so far. It never fails: without an answer there are no names. */
export async function runComplete(
  words: readonly string[],
  context: Parameters<typeof completeWords>[1],
  io: Pick<TextIo, "stdout">,
): Promise<number> {
  const completion = completeWords(words, context);
  const names = completion.names === undefined ? [] : await namesOf(completion, words).catch(() => []);
  io.stdout(renderCandidates({ ...completion, candidates: [...completion.candidates, ...names] }));
  return 0;
}

/** From the kubelet that the flags typed so far name. */
async function namesOf({ names, positionals, command }: Completion, words: readonly string[]): Promise<Candidate[]> {
  removeProxies();
  const typed = (...flags: string[]) => typedValue(words, flags);
  const kubelet = await findKubelet({
    rootDir: chooseRootDir(typed("--root-dir"))?.rootDir,
    server: typed("--server", "-s"),
  });
  if ("problem" in kubelet) return [];
  const pods = (await new KubeletApi(kubelet).pods())?.value ?? [];
  const namespace = typed("--namespace", "-n");
  const inNamespace = pods.filter((pod) => namespace === undefined || namespaceOf(pod) === namespace);
  switch (names) {
    case "namespace":
      return [...new Set(pods.map(namespaceOf))].map((word) => ({ word, description: "" }));
    case "pod":
      return inNamespace.map(({ metadata, status }) => ({
        word: metadata.name ?? "",
        description: status?.phase ?? "",
      }));
    case "container": {
      const name = positionals[command?.objects === undefined ? 0 : 1];
      const pod = name === undefined ? undefined : findPod(pods, name, { namespace });
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
