import { VIEW_COMMANDS } from "./view-commands.ts";
import { flagsOf, type ViewCommand, type ViewFlag } from "./view-flags.ts";

/** Names of the commands whose arguments are completed here, for a shell's `case` or list. */
export const VIEW_NAMES: readonly string[] = VIEW_COMMANDS.map(({ name }) => name);

const namesOf = ({ name, short }: ViewFlag) => [...(short === undefined ? [] : [`-${short}`]), `--${name}`];

const objectsOf = ({ objects = {} }: ViewCommand) => Object.keys(objects);

/** Objects whose names are pods', as people write them. */
const PODS = "pods|pod|po";

/**
 * Functions of a bash script: `_kubelet_ts_view <command> <current word> <word before>` sets COMPREPLY. Names of pods come
 * from the kubelet that runs, or that the flags on the line name.
 */
export function bashViewCompletion(): string {
  const cases = VIEW_COMMANDS.flatMap((command) =>
    flagsOf(command)
      .filter(({ value }) => value !== undefined)
      .map((flag) => {
        const words = namesOf(flag).map((name) => `"${command.name} ${name}"`);
        return `    ${words.join("|")}) ${bashAction(flag)}; return ;;`;
      }),
  );
  const lists = VIEW_COMMANDS.map((command) => {
    const flags = flagsOf(command).flatMap(namesOf).join(" ");
    return `    ${command.name}) flags="${flags}" objects="${objectsOf(command).join(" ")}" ;;`;
  });
  return `_kubelet_ts_pods() {
  local word previous="" finding=()
  for word in "\${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
    case "$previous" in
      --root-dir|--server|-s|--namespace|-n)
        [[ "$word" == "=" ]] && continue
        finding+=("$previous" "$word") ;;
    esac
    previous="$word"
  done
  "\${COMP_WORDS[0]}" get pods -o name "\${finding[@]}" 2>/dev/null
}
_kubelet_ts_view() {
  local command="$1" current="$2" previous="$3" flags="" objects="" pods
  case "$command $previous" in
${cases.join("\n")}
  esac
  case "$command" in
${lists.join("\n")}
  esac
  if [[ "$current" == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  elif [[ -n "$objects" && $COMP_CWORD -eq 2 ]]; then
    COMPREPLY=($(compgen -W "$objects" -- "$current"))
  elif [[ -z "$objects" || "\${COMP_WORDS[2]}" =~ ^(${PODS})$ ]]; then
    pods="$(_kubelet_ts_pods)"
    COMPREPLY=($(compgen -W "\${pods//pod\\//}" -- "$current"))
  fi
}`;
}

function bashAction({ choices, completes }: ViewFlag): string {
  if (choices) return `COMPREPLY=($(compgen -W "${choices.join(" ")}" -- "$current"))`;
  return completes ? `COMPREPLY=($(compgen -${completes === "directory" ? "d" : "f"} -- "$current"))` : "COMPREPLY=()";
}

/** Functions of a zsh script: `_kubelet_ts_view` completes the words of a command line behind one of these commands. */
export function zshViewCompletion(quote: (text: string) => string): string {
  const cases = VIEW_COMMANDS.map((command) => {
    const specs = flagsOf(command).flatMap((flag) =>
      namesOf(flag).map((name) => {
        const { value, choices, completes, description } = flag;
        const action = choices
          ? `(${choices.join(" ")})`
          : completes === "directory"
            ? "_files -/"
            : completes
              ? "_files"
              : " ";
        const equals = value !== undefined && name.startsWith("--") ? "=" : "";
        return `'*${name}${equals}[${quote(description)}]${value === undefined ? "" : `:value:${action}`}'`;
      }),
    );
    const objects = objectsOf(command);
    const words = objects.length === 0 ? [] : [`'2: :(${objects.join(" ")})'`];
    return `    ${command.name})
      _arguments -s ${[...specs, "'1: :'", ...words, "'*: :_kubelet_ts_pods'"].join(" \\\n        ")} ;;`;
  });
  return `_kubelet_ts_pods() {
  local -a pods
  pods=(\${\${(f)"$($words[1] get pods -o name 2>/dev/null)"}#pod/})
  compadd -a pods
}
_kubelet_ts_view() {
  case $words[2] in
${cases.join("\n")}
  esac
}`;
}

/** Lines of a fish script. */
export function fishViewCompletion(quote: (text: string) => string): string[] {
  return VIEW_COMMANDS.flatMap((command) => {
    const start = `complete -c kubelet-ts -n '__fish_seen_subcommand_from ${command.name}'`;
    const flags = flagsOf(command).map(({ name, short, value, choices, completes, description }) => {
      const arity = value === undefined ? "" : completes ? " -r -F" : " -x";
      const list = choices ? ` -a ${quote(choices.join(" "))}` : "";
      return `${start}${short === undefined ? "" : ` -s ${short}`} -l ${name}${arity}${list} -d ${quote(description)}`;
    });
    const objects = objectsOf(command);
    const names = "-f -a '(kubelet-ts get pods -o name 2>/dev/null | string replace pod/ \"\")'";
    if (objects.length === 0) return [...flags, `${start} ${names}`];
    const chosen = `__fish_seen_subcommand_from ${objects.join(" ")}`;
    const pods = `complete -c kubelet-ts -n '__fish_seen_subcommand_from ${command.name}; and __fish_seen_subcommand_from pods pod po'`;
    return [
      ...flags,
      `complete -c kubelet-ts -n '__fish_seen_subcommand_from ${command.name}; and not ${chosen} pod po' -f -a ${quote(objects.join(" "))}`,
      `${pods} ${names}`,
    ];
  });
}
