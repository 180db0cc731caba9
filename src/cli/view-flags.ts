import { nearestName } from "../text/nearest-name.ts";

/** One flag of a command that looks at a running kubelet. */
export interface ViewFlag {
  /** Without dashes. */
  name: string;
  short?: string;
  /** What it takes, for people: `wide|json`; absent: it is a switch. */
  value?: string;
  description: string;
  /** All it takes. */
  choices?: readonly string[];
  completes?: "file" | "directory";
}

/** A command that looks at a running kubelet, for its own help, for completion, and for taking its arguments apart. */
export interface ViewCommand {
  name: string;
  /** Behind `kubelet-ts `, one line each. */
  usage: readonly string[];
  /** For `--help`, below the usage. */
  about: string;
  /** First argument: what to look at, with other names for it; absent: there is none. */
  objects?: Readonly<Record<string, readonly string[]>>;
  flags: readonly ViewFlag[];
}

/** The arguments of a command. */
export type ViewArguments =
  | { problem: string }
  | { help: true }
  | { help: false; values: ReadonlyMap<string, string>; positionals: string[] };

const HELP: ViewFlag = { name: "help", short: "h", description: "Show this." };

/** How the running kubelet is found; every command has these. */
export const FINDING_FLAGS: readonly ViewFlag[] = [
  {
    name: "root-dir",
    value: "directory",
    completes: "directory",
    description: "Root directory of the kubelet to ask. Default: /var/lib/kubelet, else the only one that runs here.",
  },
  {
    name: "server",
    short: "s",
    value: "URL|port",
    description: "Ask at this address (its read-only port) instead of finding it out.",
  },
];

export const SCOPE_FLAGS: readonly ViewFlag[] = [
  { name: "namespace", short: "n", value: "name", description: "Only pods of this namespace. Default: all." },
  { name: "all-namespaces", short: "A", description: "All of them, with a column that tells which." },
];

export const SELECTOR_FLAG: ViewFlag = {
  name: "selector",
  short: "l",
  value: "key=value,…",
  description: "Only those with these labels; also !=, in (a,b), notin (a,b), key, !key.",
};

/** Taken by every command, also where it has no use for them: a shell alias may hold them. */
const GLOBAL_FLAGS: readonly ViewFlag[] = [
  { name: "root-dir", value: "directory", description: "Root directory of the kubelet." },
  { name: "docker-endpoint", value: "URL", description: "Where the engine listens." },
];

export const flagsOf = ({ flags }: ViewCommand): readonly ViewFlag[] => [...flags, HELP];

/**
 * Takes arguments apart as kubectl does: flags anywhere, `--name value`, `--name=value`, `-o wide`, `-owide`, `-fp`, `--`
 * ends them. A switch is "true" or "false" in `values`. The last of a repeated flag wins.
 */
export function parseViewArguments(command: ViewCommand, argv: readonly string[]): ViewArguments {
  const flags = flagsOf(command);
  const values = new Map<string, string>();
  const positionals: string[] = [];
  const rest = [...argv];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === "--") {
      positionals.push(...rest);
      break;
    }
    if (!word.startsWith("-") || word === "-") {
      positionals.push(word);
      continue;
    }
    const at = word.indexOf("=");
    const isLong = word.startsWith("--");
    const written = isLong ? word.slice(2, at < 0 ? undefined : at) : word.charAt(1);
    const flag = [...flags, ...GLOBAL_FLAGS].find((known) => (isLong ? known.name : known.short) === written);
    if (!flag) return { problem: unknownFlag(isLong ? `--${written}` : `-${written}`, command) };
    let attached = isLong ? (at < 0 ? undefined : word.slice(at + 1)) : word.slice(2).replace(/^=/, "") || undefined;
    if (flag.value === undefined && !isLong && attached !== undefined && !word.includes("=")) {
      // The rest are switches of their own.
      rest.unshift(`-${attached}`);
      attached = undefined;
    }
    const value = attached ?? (flag.value === undefined ? "true" : rest.shift());
    if (value === undefined) return { problem: `--${flag.name} needs a value: ${flag.value}` };
    const problem = valueProblem(flag, value);
    if (problem) return { problem };
    values.set(flag.name, value);
  }
  if (values.get("help") === "true") return { help: true };
  return { help: false, values, positionals };
}

function valueProblem({ name, value: hint, choices }: ViewFlag, value: string): string | undefined {
  const allowed = hint === undefined ? ["true", "false"] : choices;
  if (!allowed || allowed.includes(value)) return undefined;
  const near = nearestName(value, allowed);
  return `--${name} must be ${oneOf(allowed)} (found "${value}"${near ? `; did you mean ${near}?` : ""})`;
}

const oneOf = (words: readonly string[]) =>
  words.length === 1 ? words[0] : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;

function unknownFlag(written: string, command: ViewCommand): string {
  const near = nearestName(
    written.replace(/^-+/, ""),
    flagsOf(command).map(({ name }) => name),
  );
  return `${written}: no such flag of ${command.name}${near && written.startsWith("--") ? `; did you mean --${near}?` : ""}`;
}

/** Which object a first argument means: `po`, `pods` and `pod` are all `pods`. */
export function findObject(
  { name, objects = {} }: ViewCommand,
  written: string | undefined,
): string | { problem: string } {
  const known = Object.keys(objects);
  if (written === undefined) return { problem: `${name} what? Name one of: ${known.join(", ")}` };
  const found = Object.entries(objects).find(([object, aliases]) => object === written || aliases.includes(written));
  if (found) return found[0];
  const near = nearestName(written, Object.entries(objects).flat(2));
  return {
    problem: `"${written}" is nothing ${name} knows: ${known.join(", ")}${near ? `; did you mean ${near}?` : ""}`,
  };
}

const WIDTH = 80;

/** `kubelet-ts get --help` and the like. */
export function renderViewHelp(command: ViewCommand): string {
  const [first = "", ...others] = command.usage;
  const lines = [
    `Usage: kubelet-ts ${first}`,
    ...others.map((usage) => `       kubelet-ts ${usage}`),
    "",
    ...wrap(command.about, ""),
    "",
  ];
  for (const { name, short, value, description } of flagsOf(command)) {
    lines.push(`  ${short ? `-${short}, ` : ""}--${name}${value ? ` ${value}` : ""}`);
    lines.push(...wrap(description, "      "));
  }
  return `${lines.join("\n")}\n`;
}

function wrap(text: string, indent: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const line = lines.at(-1);
    if (line === undefined || line.length + 1 + word.length > WIDTH) lines.push(indent + word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines;
}
