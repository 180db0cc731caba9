import type { ArgDef } from "citty";
import type { Pod } from "../../base/api/pod.ts";
import { namespaceOf } from "../../base/model/pod.ts";
import { didYouMean } from "../../base/text/nearest-name.ts";
import { readWords, type Word } from "../../config/flags.ts";
import { takesValue as rowTakesValue } from "../../config/option-row.ts";
import { SHOWN_ROWS } from "../../config/option-table.ts";
import { COMPLETE_ARGUMENT, type Flag, flagsOf, isNamed, writtenName } from "../arguments.ts";
import { ApiClient } from "../client/api-client.ts";
import { findPod, inScope, POD_WORDS } from "../client/choose-pod.ts";
import { listKubelets, removeProxies } from "../client/find-kubelet.ts";
import { openReader } from "../client/kubelet-api.ts";
import { loadServedKinds } from "../client/object-targets.ts";
import { type CommandIo, type CommandRequest, type SubCommand, UsageError } from "../sub-command.ts";

/** `kubelet-ts completion bash|zsh|fish`. Returns the exit code. */
export function runCompletion({ positionals }: CommandRequest, io: CommandIo): number {
  const [shell = "", ...rest] = positionals;
  const script = rest.length > 0 ? undefined : SCRIPTS[shell];
  if (script === undefined) {
    const shells = Object.keys(SCRIPTS);
    throw new UsageError(`name one shell: ${shells.join(", ")}${didYouMean(shell, shells)}`);
  }
  io.stdout(script);
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
      : await Promise.race([namesOf(completion).catch(() => []), Bun.sleep(NAMES_LIMIT_MS).then(() => [])]);
  const known = new Set(completion.candidates.map(({ word }) => word));
  const candidates = [...completion.candidates, ...names.filter(({ word }) => !known.has(word))];
  io.stdout(renderCandidates({ ...completion, candidates }));
  return 0;
}

/** From the kubelet that the flags typed so far name; pods also from the engine while none runs. */
async function namesOf(completion: Completion): Promise<Candidate[]> {
  removeProxies();
  const { names, positionals, command, typed: word, given } = completion;
  const value = (flag: string) => given.findLast(({ text }) => (FLAGS[flag] ?? [`--${flag}`]).includes(text))?.value;
  const request = { value } as CommandRequest;
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
    case "pod-path":
      return (await objectsOf(request, "pods", namespace)).map((it) => ({ ...it, word: `${it.word}:` }));
    case "namespace":
      return [...new Set((await podsOf(request)).map(namespaceOf))].map((name) => ({ word: name, description: "" }));
    case "container": {
      const name = positionals[command?.objects === undefined ? 0 : 1];
      const pod = name === undefined ? undefined : findPod(await podsOf(request), name, { namespace });
      if (!pod || "problem" in pod) return [];
      return [
        ...pod.spec.containers.map((container) => ({ word: container.name, description: container.image ?? "" })),
        ...(pod.spec.initContainers ?? []).map(({ name: word }) => ({ word, description: "init container" })),
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

/** Names of objects of a kind. */
async function objectsOf(request: CommandRequest, kind: string, namespace: string | undefined): Promise<Candidate[]> {
  if (POD_WORDS.includes(kind.toLowerCase())) {
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

/**
 * Names only a running kubelet or the engine knows. `name`: of an object of the kind in front of it; `pod-path`: a pod with
 * the colon that a path follows.
 */
type NameKind = "pod" | "container" | "namespace" | "kind" | "name" | "pod-path" | "kubelet";

interface Candidate {
  word: string;
  description: string;
}

/** Candidates for the last word of a command line. */
interface Completion {
  candidates: Candidate[];
  /** Paths that the shell adds. */
  paths: "files" | "directories" | "none";
  /** Names that have to be requested. */
  names?: NameKind;
  /** Goes in front of every word: `--namespace=`. */
  prefix: string;
  /** The word as typed so far, without the prefix. */
  typed: string;
  command: SubCommand | undefined;
  /** Positionals before this word. */
  positionals: string[];
  /** Flags before this word. */
  given: readonly Word[];
}

/** Values of an argument, by its choices or its value hint. */
function valuesOf(def: ArgDef, command: SubCommand | undefined): Pick<Completion, "candidates" | "paths" | "names"> {
  const plain = (words: readonly string[]) => ({
    candidates: words.map((word) => ({ word, description: "" })),
    paths: "none" as const,
  });
  if (def.type === "enum") return plain(def.options ?? []);
  switch (def.valueHint) {
    case "object":
      return plain(Object.keys(command?.objects ?? {}));
    case "kind":
      return { ...plain(Object.keys(command?.objects ?? {})), names: def.valueHint };
    case "pod":
    case "container":
    case "namespace":
    case "name":
    case "kubelet":
      return { ...plain([]), names: def.valueHint };
    case "pod-path":
      return { ...plain([]), names: def.valueHint, paths: "files" };
    case "file":
    case "local-path":
      return { ...plain([]), paths: "files" };
    case "directory":
      return { ...plain([]), paths: "directories" };
    default:
      return plain(def.valueHint?.includes("|") ? def.valueHint.split("|") : []);
  }
}

/** Flags of the kubelet in the shape of a command's. */
const ROOT_FLAGS: readonly Flag[] = SHOWN_ROWS.flatMap((row): Flag[] => {
  if (row.flag === undefined) return [];
  const valued = rowTakesValue(row);
  const choices = row.kind.choices ?? [];
  const description = row.description.replace(/\. .*$/s, "").replace(/\.$/, "");
  const def: ArgDef = !valued
    ? { type: "boolean", description }
    : choices.length > 0
      ? { type: "enum", options: [...choices], description }
      : { type: "string", valueHint: row.kind.completes ?? "value", description };
  return [{ name: row.flag, short: row.short, def, takesValue: valued }];
});

/**
 * Completes the last of the words behind the program's name.
 * @param words `--flag`, `=` and `value` may be words of their own, as bash splits them
 */
export function completeWords(
  words: readonly string[],
  { commands, takesValue }: { commands: readonly SubCommand[]; takesValue: (flag: string) => boolean | undefined },
): Completion {
  const joined = joinEquals(words.slice(0, -1));
  const isSplit = words.at(-2) === "=" || words.at(-1) === "=";
  const last = isSplit ? (words.at(-1) === "=" ? "" : (words.at(-1) ?? "")) : (words.at(-1) ?? "");
  const before = isSplit ? joined.map((word) => word.replace(/=$/, "")) : joined;
  const read = [...readWords(before, takesValue)];
  const given = read.filter(({ kind }) => kind === "flag");
  const bare = read.filter(({ kind }) => kind !== "flag");
  const command = commands.find(({ name }) => bare[0]?.kind === "argument" && name === bare[0].text);
  const positionals = bare.slice(command ? 1 : 0).map(({ text }) => text);
  const flags = !command || command.takesKubeletFlags ? ROOT_FLAGS : flagsOf(command.args);
  const base = { prefix: "", typed: last, command, positionals, given };

  const attached = /^(--[\w-]+=)(.*)$/s.exec(last);
  const flagWord = attached ? attached[1]?.slice(0, -1) : before.at(-1);
  const flag = flags.find((known) => isNamed(known, flagWord ?? ""));
  if (flag?.takesValue && (attached || isSplit || !last.startsWith("--"))) {
    const part = attached ? { prefix: attached[1] ?? "", typed: attached[2] ?? "" } : {};
    return { ...base, ...valuesOf(flag.def, command), ...part };
  }
  if (last.startsWith("-")) {
    const candidates = flags.flatMap(({ short, def, ...names }) => {
      const description = (("negativeDescription" in def && def.negativeDescription) || def.description) ?? "";
      const long = writtenName({ short, def, ...names });
      return [...(long === short ? [] : [`--${long}`]), ...(short ? [`-${short}`] : [])].map((word) => ({
        word,
        description,
      }));
    });
    return { ...base, candidates, paths: "none" };
  }
  if (!command) {
    const shown = positionals.length > 0 ? [] : commands.filter(({ section }) => section !== undefined);
    return {
      ...base,
      candidates: shown.map(({ name, description }) => ({ word: name, description })),
      paths: "files",
    };
  }
  const declared = Object.values(command.args).filter(({ type }) => type === "positional");
  const def = declared[positionals.length] ?? declared.at(-1);
  // Names of other kinds are not asked for.
  const isOtherKind =
    def?.valueHint === "pod" &&
    command.objects !== undefined &&
    positionals.length > 0 &&
    !POD_WORDS.includes(positionals[0] ?? "");
  if (!def || isOtherKind) return { ...base, candidates: [], paths: "none" };
  return { ...base, ...valuesOf(def, command) };
}

/** `--flag`, `=`, `value` become one word again. */
function joinEquals(words: readonly string[]): string[] {
  const joined: string[] = [];
  for (const [index, word] of words.entries()) {
    const isAttached = word === "=" || words[index - 1] === "=";
    if (isAttached && joined.length > 0) joined.push(`${joined.pop()}${word}`);
    else joined.push(word);
  }
  return joined;
}

/** Input of the scripts: a word, a tab and its description per line; the last line says which paths to add. */
export function renderCandidates({ candidates, paths, prefix, typed }: Completion): string {
  const lines = candidates
    .filter(({ word }) => word.startsWith(typed))
    .map(({ word, description }) => `${prefix}${word}\t${description}`);
  return `${[...lines, `:${paths}`].join("\n")}\n`;
}

/** Scripts that ask the binary for every completion, so that all shells complete alike. */
export const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `# bash completion of kubelet-ts: source <(kubelet-ts completion bash)
_kubelet_ts() {
  local IFS=$'\\n' lines paths current="\${COMP_WORDS[COMP_CWORD]}"
  lines=($("\${COMP_WORDS[0]}" ${COMPLETE_ARGUMENT} "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ \${#lines[@]} -gt 0 ]] || return
  paths="\${lines[\${#lines[@]}-1]}"
  unset "lines[\${#lines[@]}-1]"
  COMPREPLY=("\${lines[@]%%$'\\t'*}")
  [[ "$current" == "=" ]] && current=""
  case "$paths" in
    :files) COMPREPLY+=($(compgen -f -- "$current")) ;;
    :directories) COMPREPLY+=($(compgen -d -- "$current")) ;;
  esac
  [[ \${#COMPREPLY[@]} -eq 1 && "\${COMPREPLY[0]}" == *[=:/] ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -o filenames -F _kubelet_ts kubelet-ts
`,
  zsh: `#compdef kubelet-ts
# zsh completion of kubelet-ts: source <(kubelet-ts completion zsh), or save it as _kubelet-ts in a directory of $fpath
_kubelet_ts() {
  local -a lines items
  local line paths
  lines=("\${(@f)$("\${words[1]}" ${COMPLETE_ARGUMENT} "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  paths="\${lines[-1]}"
  for line in "\${(@)lines[1,-2]}"; do
    items+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  (( \${#items} )) && _describe 'kubelet-ts' items
  case "$paths" in
    :files) _files ;;
    :directories) _files -/ ;;
  esac
}
if [[ "\${zsh_eval_context[-1]}" == "loadautofunc" ]]; then
  _kubelet_ts "$@"
else
  whence compdef >/dev/null || { autoload -Uz compinit && compinit }
  compdef _kubelet_ts kubelet-ts
fi
`,
  fish: `# fish completion of kubelet-ts: kubelet-ts completion fish | source
function __kubelet_ts_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l program $words[1]
  set -e words[1]
  for line in ($program ${COMPLETE_ARGUMENT} $words "$current" 2>/dev/null)
    switch $line
      case ':files'
        __fish_complete_path "$current"
      case ':directories'
        __fish_complete_directories "$current"
      case ':none'
      case '*'
        printf '%s\\n' $line
    end
  end
end
complete -c kubelet-ts -f -a '(__kubelet_ts_complete)'
`,
};
