import { basename, dirname } from "node:path";
import { namesIfReadable } from "../base/files/whole-file.ts";
import { didYouMean, nearestName } from "../base/text/nearest-name.ts";
import { isManifestUrl } from "../base/text/url.ts";
import { nearestFlag, parseCommandLine, readWords, flagTakesValue as takesValue } from "../config/flags.ts";
import { emptyWord, flagsOf, isNamed, writtenName } from "./arguments.ts";
import { CHANGE_COMMANDS, INSIDE_COMMANDS, SETUP_COMMANDS, SHOW_COMMANDS } from "./declarations.ts";
import type { SubCommand } from "./sub-command.ts";

/** Every sub-command, in the order of `--help`. What a command does is loaded when it runs. */
export const COMMANDS: readonly SubCommand[] = [
  ...SHOW_COMMANDS,
  ...CHANGE_COMMANDS,
  ...INSIDE_COMMANDS,
  ...SETUP_COMMANDS,
];

export const findCommand = (name: string | undefined): SubCommand | undefined =>
  COMMANDS.find((command) => command.name === name);

/** The program part that a command line starts. */
type Invocation =
  | { kind: "command"; command: SubCommand; argv: string[] }
  /** The kubelet itself: flags and manifests. */
  | { kind: "kubelet"; argv: readonly string[] }
  | { kind: "flags-help" }
  /** Nothing is started; the message names the word and says what to write instead. */
  | { kind: "refused"; message: string };

/** Words of kubectl, docker and podman that are not commands here, and what does the job; VERB is the word. */
const FIXES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "ps status list ls": "write: kubelet-ts get pods",
    stats: "write: kubelet-ts top pods",
    inspect: "write: kubelet-ts describe pod <name>",
    log: "write: kubelet-ts logs <pod>",
    "run start up":
      "write: kubelet-ts <manifest> to supervise its pods, or kubelet-ts --runonce <manifest> to start them and exit",
    serve: "write: kubelet-ts --pod-manifest-path=<directory>",
    "play kube": "write: kubelet-ts --runonce <manifest>",
    compose: "write: kubelet-ts import compose > <manifest>, and kubelet-ts <manifest>",
    "images image pull push build load save tag": "images are those of the engine: docker VERB",
    "kubectl crictl ctr docker podman k3s": "write without VERB, e.g.: kubelet-ts get pods",
    "reload enable disable": "write: systemctl VERB kubelet-ts",
    journalctl: "write: journalctl -u kubelet-ts",
    "rm stop kill": "write: kubelet-ts delete pod <name>",
    "lint check": "write: kubelet-ts validate <manifest>",
    replace: "write: kubelet-ts apply -f <manifest>",
    rollout:
      "write: kubelet-ts restart <kind>/<name>, kubelet-ts wait <kind>/<name> --for=condition=Available; or use kubectl rollout after: kubelet-ts kubeconfig --merge",
    debug: "write: kubelet-ts exec -it <pod> -- sh; or use kubectl debug after: kubelet-ts kubeconfig --merge",
    "scale edit label annotate patch set expose":
      "edit the manifest and write: kubelet-ts apply -f <manifest>; or use kubectl VERB after: kubelet-ts kubeconfig --merge",
    "auth drain cordon uncordon api-resources api-versions cluster-info":
      "use kubectl VERB after: kubelet-ts kubeconfig --merge",
  }).flatMap(([words, fix]) => words.split(" ").map((word) => [word, fix.replace("VERB", word)] as const)),
);

const FILENAME_FLAG =
  "a manifest is given without -f: kubelet-ts <manifest> supervises its pods, kubelet-ts --runonce <manifest> starts them and exits; kubelet-ts apply -f <manifest> submits it to the kubelet that runs";

/**
 * Finds the sub-command of a command line, which may be behind flags. Without one, every bare word must be a manifest
 * that exists: a misspelled command must never start a kubelet, which removes the pods it was not given.
 * @param exists whether a file or directory of that name exists
 */
export function readCommandLine(argv: readonly string[], exists: (path: string) => boolean): Invocation {
  const bare = readWords(argv, flagTakesValue)
    .filter(({ kind }) => kind !== "flag")
    .toArray();
  const [first, second] = bare.filter(({ kind }) => kind === "argument");
  const command = findCommand(first?.text);
  const found = first && command && ({ kind: "command", command, argv: argv.toSpliced(first.index, 1) } as const);
  if (found && !command.takesKubeletFlags) return found;
  if (first?.text === "help") {
    const topic = second?.text;
    if (topic === "flags") return { kind: "flags-help" };
    if (topic === undefined) return { kind: "kubelet", argv: ["--help"] };
    const about = findCommand(topic);
    if (about) return { kind: "command", command: about, argv: ["--help"] };
    return { kind: "refused", message: unknownWord(topic) };
  }
  if (!found && argv.some((flag) => /^(-f|--filename(=|$))/.test(flag))) {
    return { kind: "refused", message: FILENAME_FLAG };
  }
  const missing = bare
    .flatMap((word) => (found && word === first ? [] : word.text))
    .find((name) => name === "" || (name !== "-" && !isManifestUrl(name) && isMissing(name, exists)));
  if (missing === undefined) return found ?? { kind: "kubelet", argv };
  if (missing === "") return { kind: "refused", message: emptyWord("the name of a manifest") };
  const hint = didYouMean(basename(missing), namesIfReadable(dirname(missing)));
  const problem =
    isPlainWord(missing) && !found
      ? unknownWord(missing)
      : isImage(missing)
        ? imageInsteadOfManifest(missing)
        : `manifest "${missing}" does not exist; name an existing file, or a directory, which may come later${hint}`;
  // A misspelled flag may be the reason why the word is taken for a manifest or a command. Flags after a word that was meant
  // as a command are those of the command.
  const { errors } = parseCommandLine(isPlainWord(missing) ? argv.slice(0, argv.indexOf(missing)) : argv);
  return { kind: "refused", message: [...errors, problem].join("\nkubelet-ts: ") };
}

const isPlainWord = (word: string): boolean => /^[A-Za-z][\w-]*$/.test(word);

/** `nginx:1.22`, as Docker's command takes it. */
const isImage = (word: string): boolean =>
  /^[a-z0-9][\w./-]*(:\d+\/[\w./-]+)?(:\w[\w.-]*|@sha256:[0-9a-f]+)$/.test(word);

function imageInsteadOfManifest(image: string): string {
  const name = /([a-z0-9-]+)[:@][^/]*$/.exec(image)?.[1] ?? "app";
  const spec = { containers: [{ name, image }] };
  const manifest = JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name }, spec });
  return `"${image}" is an image, and no file or directory of that name exists; kubelet-ts runs manifests: echo '${manifest}' | kubelet-ts --runonce -`;
}

/** A directory may come later; a plain word, the name of an image and that of a manifest file must exist. */
const isMissing = (name: string, exists: (path: string) => boolean): boolean =>
  (isPlainWord(name) || isImage(name) || /\.(ya?ml|json)$/i.test(name)) && !exists(name);

function unknownWord(word: string): string {
  const commands = COMMANDS.map(({ name }) => name);
  const nearest = nearestName(word, [...commands, "help"]);
  const hint =
    FIXES.get(word) ?? (nearest === undefined ? `commands are ${commands.join(", ")}` : `did you mean ${nearest}?`);
  return `there is no command "${word}", and no file or directory of that name; ${hint} (write ./${word} for a directory that comes later)`;
}

/**
 * Whether a flag in front of the command takes the next word as its value: for the kubelet, else for some command, else where
 * it is misspelled; undefined for an unknown flag.
 * @param written with its dashes, without a value
 */
export function flagTakesValue(written: string): boolean | undefined {
  const ofKubelet = takesValue(written);
  if (ofKubelet !== undefined) return ofKubelet;
  const known = COMMANDS.flatMap(({ args }) => flagsOf(args).filter((flag) => isNamed(flag, written)));
  if (known.length > 0) return known.some((flag) => flag.takesValue);
  // The next word is the value of the flag that is meant, not a command or manifest.
  const names = COMMANDS.flatMap(({ args }) => flagsOf(args).map(writtenName));
  const meant = nearestFlag(written, names);
  return meant === undefined ? undefined : flagTakesValue(`--${meant}`);
}
