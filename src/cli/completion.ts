import { takesValue } from "../config/option-row.ts";
import { SHOWN_ROWS } from "../config/option-table.ts";
import type { CommandSummary } from "./help.ts";
import { bashViewCompletion, fishViewCompletion, VIEW_NAMES, zshViewCompletion } from "./view-completion.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

interface FlagCompletion {
  /** With dashes. */
  names: string[];
  description: string;
  takesValue: boolean;
  choices: readonly string[];
  completes: "file" | "directory" | undefined;
}

/** A script for the shell that completes commands, flags, their values and manifests. */
export function renderCompletion(shell: Shell, commands: readonly CommandSummary[]): string {
  const flags = SHOWN_ROWS.flatMap((row): FlagCompletion[] => {
    if (row.flag === undefined) return [];
    const names = [row.short === undefined ? "" : `-${row.short}`, row.flag === row.short ? "" : `--${row.flag}`];
    return [
      {
        names: names.filter(Boolean),
        description: row.description.replace(/\. .*$/s, "").replace(/\.$/, ""),
        takesValue: takesValue(row),
        choices: row.kind.choices ?? [],
        completes: row.kind.completes,
      },
    ];
  });
  switch (shell) {
    case "bash":
      return bash(flags, commands);
    case "zsh":
      return zsh(flags, commands);
    case "fish":
      return fish(flags, commands);
    default:
      return shell satisfies never;
  }
}

function bash(flags: readonly FlagCompletion[], commands: readonly CommandSummary[]): string {
  const valued = flags.filter((flag) => flag.takesValue);
  const cases = valued.map(({ names, choices, completes }) => {
    const action =
      choices.length > 0
        ? `COMPREPLY=($(compgen -W "${choices.join(" ")}" -- "$current"))`
        : completes === "directory"
          ? 'COMPREPLY=($(compgen -d -- "$current"))'
          : completes === "file"
            ? 'COMPREPLY=($(compgen -f -- "$current"))'
            : "COMPREPLY=()";
    return `    ${names.join("|")}) ${action}; return ;;`;
  });
  return `# bash completion of kubelet-ts: source <(kubelet-ts completion bash)
${bashViewCompletion()}
_kubelet_ts() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  # --flag=value arrives as three words.
  if [[ "$current" == "=" ]]; then
    current=""
  elif [[ "$previous" == "=" ]]; then
    previous="\${COMP_WORDS[COMP_CWORD-2]}"
  fi
  if [[ $COMP_CWORD -gt 1 && "\${COMP_WORDS[1]}" =~ ^(${VIEW_NAMES.join("|")})$ ]]; then
    _kubelet_ts_view "\${COMP_WORDS[1]}" "$current" "$previous"
    return
  fi
  case "$previous" in
${cases.join("\n")}
  esac
  if [[ "$current" == -* ]]; then
    COMPREPLY=($(compgen -W "${flags.flatMap(({ names }) => names).join(" ")}" -- "$current"))
  elif [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(" ")}" -- "$current") $(compgen -f -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -o filenames -F _kubelet_ts kubelet-ts
`;
}

function zsh(flags: readonly FlagCompletion[], commands: readonly CommandSummary[]): string {
  // First what _arguments would take for its own, then what ends a word in quotes.
  const quote = (text: string) => text.replace(/([[\]:\\])/g, "\\$1").replaceAll("'", "'\\''");
  const specs = flags.flatMap(({ names, description, takesValue: valued, choices, completes }) => {
    const action =
      choices.length > 0
        ? `(${choices.join(" ")})`
        : completes === "directory"
          ? "_files -/"
          : completes
            ? "_files"
            : " ";
    return names.map((name) => {
      const equals = valued && name.startsWith("--") ? "=" : "";
      return `    '*${name}${equals}[${quote(description)}]${valued ? `:value:${action}` : ""}'`;
    });
  });
  return `#compdef kubelet-ts
# zsh completion of kubelet-ts: put it into a directory of $fpath as _kubelet-ts
${zshViewCompletion(quote)}
_kubelet_ts() {
  if (( CURRENT > 2 )) && [[ $words[2] == (${VIEW_NAMES.join("|")}) ]]; then
    _kubelet_ts_view
    return
  fi
  local -a commands
  commands=(
${commands.map(({ name, description }) => `    '${name}:${quote(description)}'`).join("\n")}
  )
  _arguments -s \\
${specs.map((spec) => `${spec} \\`).join("\n")}
    '1: :{_describe command commands; _files}' \\
    '*:manifest:_files'
}
_kubelet_ts "$@"
`;
}

function fish(flags: readonly FlagCompletion[], commands: readonly CommandSummary[]): string {
  const quote = (text: string) => `'${text.replace(/(['\\])/g, "\\$1")}'`;
  const lines = flags.map(({ names, description, takesValue: valued, choices, completes }) => {
    const words = names.map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
    const arity = !valued ? "" : completes ? " -r -F" : " -x";
    const list = choices.length > 0 && valued ? ` -a ${quote(choices.join(" "))}` : "";
    return `complete -c kubelet-ts -n 'not __fish_seen_subcommand_from ${VIEW_NAMES.join(" ")}' ${words.join(" ")}${arity}${list} -d ${quote(description)}`;
  });
  const names = commands.map(
    ({ name, description }) => `complete -c kubelet-ts -n __fish_use_subcommand -a ${name} -d ${quote(description)}`,
  );
  return `# fish completion of kubelet-ts: kubelet-ts completion fish | source\n${[...names, ...lines, ...fishViewCompletion(quote)].join("\n")}\n`;
}
