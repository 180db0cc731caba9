import { dirname, resolve } from "node:path";
import type { ConfigMap, Secret } from "../base/api/config-objects.ts";
import type { ObjectMeta } from "../base/api/meta.ts";
import type { Pod } from "../base/api/pod.ts";
import type { DesiredPod, ManifestLocation, SourceKind } from "../base/model/desired-state.ts";
import { type DesiredObject, objectKey, type TypedObject } from "../base/model/desired-state.ts";
import type { Finding } from "../base/model/finding.ts";
import { type DecodeIssue, isTypeIssue } from "./decode/decode.ts";
import type { Field, FieldError, FieldPath, SupportNote } from "./field.ts";
import type { LineTable, SourceNode } from "./yaml/source-node.ts";

/**
 * Treatment of unknown fields and objects without effect. `strict`: both are errors, and names must follow Kubernetes'
 * rules. `standard`: unknown fields are errors; objects without effect on one node, what `podman kube play` accepts, and
 * container declarations without apiVersion are accepted with a warning. `warn`, `ignore`: as `standard`, but unknown fields are
 * warnings or are ignored (as the kubelet does).
 */
export type Strictness = "strict" | "standard" | "warn" | "ignore";

export interface ReadManifestOptions {
  /** File path, masked URL or `-`; used in findings and `DesiredPod.origin`. */
  file: string;
  /** Lower case; suffix of every pod name. */
  nodeName: string;
  source: SourceKind;
  /** Default `strict`. */
  strictness?: Strictness;
  /** Whether containers may be privileged. Default true, as the kubelet has it. */
  allowPrivileged?: boolean;
  /** Whether pods may have ephemeral containers, as running pods do. Default false. */
  allowEphemeralContainers?: boolean;
  /** Fill in `ObjectResult.positions`, which keeps the whole text in memory. Default false. */
  keepPositions?: boolean;
}

/** Maps fields of an object to positions in the text. */
interface ObjectPositions {
  /** Path of the object in its document. */
  path: FieldPath;
  locate(path: FieldPath): { line: number; column: number };
  /** "" where the line may be part of a Secret. */
  lineText(line: number): string;
}

/** Result for one object of the stream, as `validate` prints it. A list is represented by its items. */
export interface ObjectResult {
  file: string;
  /** 1-based number of the YAML document. */
  document: number;
  /** Kind as written; "" when not known. */
  kind: string;
  /** Name as written, without the node suffix; "" when not known. */
  name: string;
  namespace: string;
  /** Kubernetes' verdict: no `syntax` or `invalid` finding, and a kind that the kubelet accepts. */
  valid: boolean;
  /** Valid, runnable here, and without findings that the strictness makes errors. */
  ok: boolean;
  findings: Finding[];
  /** The defaulted pod with its static-pod identity; present whenever it is valid or runs here. */
  pod?: Pod;
  /** Objects of other kinds, defaulted. */
  desired?: TypedObject;
  positions?: ObjectPositions;
}

/** Contents of one manifest. */
export interface ManifestResult {
  /** Only pods that are valid and runnable here, in the order of the text. */
  pods: DesiredPod[];
  /** Namespace filled in; values of `binaryData` in base64. */
  configMaps: ConfigMap[];
  /** Namespace filled in; `stringData` merged into `data` (base64). */
  secrets: Secret[];
  /** Objects of the other kinds, in the order of the text. */
  objects: DesiredObject[];
  /** Where each object other than a pod begins, by {@link ObjectKey}; the first of a name counts. */
  locations: Record<string, ManifestLocation>;
  /** All findings of all objects, in the order of the text. */
  findings: Finding[];
  results: ObjectResult[];
}

/** Inputs of reading one document, other than its nodes. */
export interface ReadContext {
  options: ReadManifestOptions;
  /** See `DesiredPod.origin`. */
  origin: string;
  document: number;
  lines: LineTable;
  /** Findings left for the whole file: see {@link MAX_FINDINGS_PER_FILE}. */
  budget: { findings: number };
  /** Receives the objects and findings. */
  result: ManifestResult;
}

/** Objects read from one file, items of lists included. A node runs hundreds of pods. */
export const MAX_OBJECTS = 10_000;
/** Findings kept per file; bounds the memory that a hostile text can take. */
export const MAX_FINDINGS_PER_FILE = 20_000;
/** Findings kept per object. */
const MAX_FINDINGS = 500;

/** Collects the findings and the result of one object. */
export class ObjectReading {
  kind = "";
  name = "";
  namespace = "";
  pod: Pod | undefined;
  desired: TypedObject | undefined;
  /** Kubernetes' verdict: no `syntax` or `invalid` finding, and a kind that the kubelet accepts. */
  valid = true;
  /** No finding that is an error. */
  ok = true;
  readonly findings: Finding[] = [];
  #dropped = 0;

  constructor(
    readonly root: SourceNode,
    readonly path: FieldPath,
    readonly context: ReadContext,
  ) {}

  /** Adds an error of a field. */
  refuse(path: FieldPath, message: string, type?: string): void {
    this.add("invalid", "error", path, message, type);
  }

  add(code: Finding["code"], severity: Finding["severity"], path: FieldPath, message: string, type?: string): void {
    this.addAt(code, severity, locateField(this.root, path), path, message, type);
  }

  addAt(
    code: Finding["code"],
    severity: Finding["severity"],
    offset: number,
    path: FieldPath,
    message: string,
    type?: string,
  ): void {
    if (severity === "error") this.ok = false;
    if (code === "invalid" || code === "syntax") this.valid = false;
    const { options, document, lines, budget } = this.context;
    if (this.findings.length >= MAX_FINDINGS || (this.findings.length > 0 && budget.findings <= 0)) {
      this.#dropped++;
      return;
    }
    budget.findings--;
    const position = { file: options.file, document, ...lines.locate(offset) };
    const finding: Finding = { code, severity, ...position, field: path.toString(), message };
    if (type !== undefined) finding.type = type;
    this.findings.push(finding);
  }

  /**
   * @param isSecret whether the value at a path must not appear in messages
   * @returns whether every value fits its field, or is taken for one that does
   */
  addDecodeIssues(issues: DecodeIssue[], isSecret: (field: string) => boolean = () => false): boolean {
    const { strictness = "strict" } = this.context.options;
    const isForgiving = this.acceptsPodman;
    const isMismatch = (issue: DecodeIssue) => isTypeIssue(issue) && !(isForgiving && issue.kind !== "type");
    for (const issue of issues) {
      const message = isSecret(issue.path.toString()) ? issue.discreet : issue.message;
      if (isMismatch(issue)) this.addAt("invalid", "error", issue.offset, issue.path, message, "DecodeError");
      else if (isTypeIssue(issue)) {
        const how = issue.kind === "quoted" ? "without them" : "as that text";
        this.addAt("ignored", "warning", issue.offset, issue.path, `${message}; it is read ${how} here`);
        this.valid = false;
      } else if (issue.kind === "duplicate") this.addAt("ignored", "warning", issue.offset, issue.path, message);
      else if (strictness !== "ignore") {
        const severity = strictness === "warn" || (issue.isNeedless && isForgiving) ? "warning" : "error";
        this.addAt("unknown", severity, issue.offset, issue.path, message);
      }
    }
    return !issues.some(isMismatch);
  }

  /** Whether objects without effect and deviations from Kubernetes' rules are accepted with a warning. */
  get isLenient(): boolean {
    return (this.context.options.strictness ?? "strict") !== "strict";
  }

  /**
   * Whether what podman accepts is accepted too. Clients of the API get its verdict; with `warn` and `ignore`, which are
   * about unknown fields, the verdict is the kubelet's.
   */
  get acceptsPodman(): boolean {
    const { strictness, source } = this.context.options;
    return strictness === "standard" && source !== "api";
  }

  /** Directory that host paths are relative to; without one, relative ones are refused. */
  get directory(): string | undefined {
    return this.acceptsPodman ? directoryOf(this.context.options) : undefined;
  }

  /** Warns of something that Kubernetes refuses and that is accepted here, unless the place has an error. */
  addDeviation(path: FieldPath, message: string): void {
    if (!this.hasErrorIn(path)) this.add("ignored", "warning", path, message);
    this.valid = false;
  }

  /** Whether a field, or one in it, has an error: its value here is not the one that was written. */
  hasErrorIn(path: FieldPath): boolean {
    const place = path.toString();
    return this.findings.some(
      ({ field = "", severity }) => severity === "error" && (field === place || field.startsWith(`${place}.`)),
    );
  }

  addFieldErrors(errors: readonly FieldError[]): void {
    for (const { path, type, message, at, atKey } of errors) {
      this.addAt("invalid", "error", locateField(this.root, at, atKey), path, message, type);
    }
  }

  addNotes(notes: readonly SupportNote[]): void {
    for (const { code, path, message } of notes)
      this.add(code, code === "ignored" ? "warning" : "error", path, message);
  }

  /** Where an object of this text begins; undefined for an object of an API client. */
  locationOf(node: SourceNode): ManifestLocation | undefined {
    const { options, document, lines } = this.context;
    if (options.source === "api") return undefined;
    return { file: options.file, document, line: lines.locate(node.offset).line };
  }

  /** Adds the location of an accepted object to the result. */
  noteLocation(kind: string, metadata: ObjectMeta, node: SourceNode): void {
    const location = this.locationOf(node);
    if (location) this.context.result.locations[objectKey(kind, metadata)] ??= location;
  }

  #positions(): ObjectPositions {
    const { root, path } = this;
    const { lines } = this.context;
    return {
      path,
      locate: (field) => lines.locate(locateField(root, field)),
      // A text that is no object may be a file of passwords.
      lineText: (line) => (root.kind !== "string" && mayShowLines(this.kind, lines) ? lines.lineText(line) : ""),
    };
  }

  finish(): void {
    const { options, document, result } = this.context;
    const { kind, name, namespace, valid, ok, findings } = this;
    const last = findings.at(-1);
    if (last && this.#dropped > 0) {
      const severity = ok ? "warning" : "error";
      findings.push({ ...last, severity, field: "", message: `and ${this.#dropped} more findings` });
    }
    const outcome: ObjectResult = { file: options.file, document, kind, name, namespace, valid, ok, findings };
    if (this.pod && (valid || ok)) outcome.pod = this.pod;
    if (this.desired && (valid || ok)) outcome.desired = this.desired;
    if (options.keepPositions) outcome.positions = this.#positions();
    result.results.push(outcome);
  }
}

/** Words of Secrets, also when the kind is misspelled or the text is not YAML. */
const SECRET_WORDS = /secret|stringdata|passw|token/i;

/** Whether lines of an object may be printed. */
const mayShowLines = (kind: string, lines: LineTable): boolean =>
  PUBLIC_KINDS.has(kind) || !lines.matches(SECRET_WORDS);

const PUBLIC_KINDS = new Set(["Pod", "ConfigMap"]);

/**
 * Position of a field in the text: its value, or the nearest existing parent.
 * @param atKey position of the key instead of the value
 * @returns UTF-16 offset.
 */
function locateField(root: SourceNode, path: FieldPath, atKey = false): number {
  let node = root;
  let keyOffset = root.offset;
  let viaKey = false;
  for (const step of path.steps()) {
    const entry = node.kind === "map" ? node.entries.get(String(step)) : undefined;
    const item = node.kind === "list" && typeof step === "number" ? node.items[step] : undefined;
    const next = entry?.value ?? item;
    if (!next) return viaKey ? keyOffset : node.offset;
    viaKey = entry !== undefined;
    keyOffset = entry?.keyOffset ?? next.offset;
    node = next;
  }
  return atKey ? keyOffset : node.offset;
}

/** The absolute directory of a manifest file; undefined for standard input, URLs and the API. */
export const directoryOf = ({ file, source }: ReadManifestOptions): string | undefined =>
  source === "file" && file !== "-" && !/^\w+:\/\//.test(file) ? dirname(resolve(file)) : undefined;

/**
 * Makes the relative paths of hostPath volumes absolute: Kubernetes accepts them and cannot mount them; podman and Compose
 * resolve them. Changes the pod in place.
 * @param directory that the paths are relative to; without it they are refused
 */
export function resolveHostPaths(pod: Field<Pod>, directory: string | undefined): SupportNote[] {
  const volumes = pod.field("spec").field("volumes").items();
  return volumes.flatMap((volume) => {
    const { hostPath } = volume.value;
    if (!hostPath || hostPath.path === "" || hostPath.path.startsWith("/")) return [];
    const path = volume.field("hostPath").field("path");
    const problem = findProblem(hostPath.path, directory);
    if (problem !== undefined) return path.note(problem, "unsupported");
    hostPath.path = resolve(directory ?? "", hostPath.path);
    const how = `it is read as ${hostPath.path}, relative to the manifest`;
    return path.note(`is relative, which Kubernetes cannot mount: ${how}`);
  });
}

/** Why a relative path cannot be resolved; undefined when it can. */
function findProblem(written: string, directory: string | undefined): string | undefined {
  if (/^[$%]|\$\{/.test(written)) {
    return "variables are not replaced here: write an absolute path, or run `envsubst < FILE` first";
  }
  if (written.startsWith("~")) return "~ is not replaced here: write an absolute path";
  return directory === undefined
    ? "must be absolute: only in a manifest file can a path be relative, to the directory of the file"
    : undefined;
}
