import { existsSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import type { ObjectMeta } from "../../base/api/meta.ts";
import type { Pod } from "../../base/api/pod.ts";
import { nodeNameOfPod } from "../../base/host/node-name.ts";
import { RootDirectoryError } from "../../base/host/root-directory.ts";
import { type DesiredPod, type DesiredWorkload, isWorkload } from "../../base/model/desired-state.ts";
import type { Logger } from "../../base/model/logger.ts";
import { namespaceOf, podFullName } from "../../base/model/pod.ts";
import { resolveOptions } from "../../config/resolve-options.ts";
import { readRemovalSettings } from "../../daemon/removal-settings.ts";
import { removePods } from "../../daemon/remove-pods.ts";
import type { EnginePod } from "../../docker/docker-host.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import { RUN_ONCE_ID } from "../../sources/desired-state-feed.ts";
import { ApiClient, ApiStatusError } from "../client/api-client.ts";
import { choosePods, POD_WORDS } from "../client/choose-pod.ts";
import { locateKubelet, removeProxies } from "../client/find-kubelet.ts";
import { locationOf, readKeptObjects, submittedPath, submittedWorkloads } from "../client/kept-pods.ts";
import { readManifestFiles } from "../client/manifest-inputs.ts";
import { kindNames, kindOf, loadServedKinds, referenceOf, selectObjects } from "../client/object-targets.ts";
import {
  CommandError,
  type CommandIo,
  type CommandRequest,
  dryRunText,
  durationFlag,
  scopeOf,
  selectorOf,
  UsageError,
} from "../sub-command.ts";

/** Which pods are meant: by names, by manifests, or every one that matches the flags. */
interface Wanted {
  request: CommandRequest;
  isSelected: boolean;
  /** As written, without a kind. */
  names: string[];
  /** The first word may be a misspelled kind. */
  isKindAssumed: boolean;
  inputs: { file: string; bytes: Uint8Array }[];
  graceSeconds: number | undefined;
}

/** `kubelet-ts delete` and `kubelet-ts down`. Returns the exit code. */
export async function runDelete(request: CommandRequest, io: CommandIo): Promise<number> {
  removeProxies();
  const named = request.positionals.filter((word) => /\.(?:ya?ml|json)$/.test(word));
  const file = named.find((word) => /^[./]/.test(word) || existsSync(word));
  if (file !== undefined) throw new UsageError(`a file is given with -f: -f ${file}`);
  const kubelet = await locateKubelet(request);
  if (!("problem" in kubelet)) return await deleteByApi(request, io, graceOf(request));
  // Which of several kubelets is meant is never guessed.
  if (!kubelet.isAbsent) throw new CommandError(kubelet.problem);
  return await removeFromRoot(kubelet.rootDir, await readWanted(request), io);
}

/** @throws UsageError */
async function readWanted(request: CommandRequest): Promise<Wanted> {
  const { positionals, values, isOn } = request;
  const [first = "", ...rest] = positionals;
  const isKindWritten = POD_WORDS.includes(first.toLowerCase());
  const written = isKindWritten ? rest : positionals;
  const names = written.map((name) => {
    const [kind, of] = name.split("/", 2);
    if (of === undefined) return name;
    if (!POD_WORDS.includes(kind ?? ""))
      throw new UsageError(`"${name}" is not a pod; only pods are removed while no kubelet runs`);
    return of;
  });
  const files = values("filename");
  await refuseOtherKinds(positionals);
  const isSelected = isOn("all") || request.value("selector") !== undefined;
  if ([names.length > 0, files.length > 0, isSelected].filter(Boolean).length !== 1) {
    throw new UsageError("name pods, or give -f FILE, --selector, or --all for every pod of the root directory");
  }
  const inputs = files.length > 0 ? await readManifestFiles(files) : [];
  selectorOf(request, names);
  return {
    request,
    isSelected,
    names,
    isKindAssumed: !isKindWritten && !positionals.some((word) => word.includes("/")),
    inputs,
    graceSeconds: graceOf(request),
  };
}

/** Objects without containers are the business of a kubelet. @throws CommandError */
async function refuseOtherKinds([first]: readonly string[]): Promise<void> {
  const word = first?.split("/", 1)[0]?.toLowerCase();
  if (word === undefined || POD_WORDS.includes(word)) return;
  const kind = (await loadServedKinds()).find((it) => kindNames(it).includes(word));
  if (kind) {
    throw new CommandError(
      `only pods are removed while no kubelet runs, not ${kind.plural}: start the kubelet first, or delete the pods: delete pod NAME, delete pod -l SELECTOR`,
    );
  }
}

/** As kubectl reads these flags: without --force a pod has a second at least. @throws UsageError */
export function graceOf({ value, isOn }: Pick<CommandRequest, "value" | "isOn">): number | undefined {
  const text = value("grace-period");
  if (text !== undefined && !/^(\d+|-1)$/.test(text)) {
    throw new UsageError(`--grace-period must be a whole number of seconds (found "${text}")`);
  }
  const grace = text === undefined || text === "-1" ? undefined : Number(text);
  if (isOn("now")) {
    if (grace !== undefined) throw new UsageError("give --now or --grace-period, not both");
    return 1;
  }
  if (isOn("force")) {
    if (grace) throw new UsageError("--force kills at once: leave out --grace-period, or --force");
    return 0;
  }
  return grace === 0 ? 1 : grace;
}

/** Says whether a pod that was removed comes back. */
function describeReturn(desired: DesiredPod | DesiredWorkload): string {
  const location = locationOf(desired);
  return "sourceId" in desired && desired.sourceId === RUN_ONCE_ID
    ? `was started once from ${location}: it stays removed until that file is given to kubelet-ts again`
    : `comes from ${location}: a kubelet that reads it starts it again`;
}

async function removeFromRoot(rootDir: string, wanted: Wanted, io: CommandIo): Promise<number> {
  const { request } = wanted;
  const endpoint = request.value("docker-endpoint");
  const flags = [`--root-dir=${rootDir}`, ...(endpoint === undefined ? [] : [`--docker-endpoint=${endpoint}`])];
  const { options: given, errors } = await resolveOptions(flags);
  if (errors.length > 0) throw new UsageError(errors.join("\n"));
  const { dockerEndpoint = "" } = readRemovalSettings(rootDir);
  const options = { ...given, ...readRemovalSettings(rootDir), dockerEndpoint: given.dockerEndpoint || dockerEndpoint };
  if (request.value("field-selector") !== undefined)
    throw new UsageError("--field-selector needs a running kubelet: name the pods, or give --selector");
  const dryRun = dryRunText(request);
  const isAll = dryRun === "" && request.isOn("all") && request.value("selector") === undefined;
  // With a kind, as in `delete pods --all`, workloads stay, as with kubectl.
  const takesWorkloads = isAll && request.positionals.length === 0;
  const { namespace } = scopeOf(request);
  const problems: string[] = [];
  // Read before the removal, which drops the pods from the checkpoints.
  const { pods, objects } = readKeptObjects(rootDir);
  const isThere = ({ origin }: { origin: string }) => existsSync(origin.replace(/(:\d+| \(.*\))$/, ""));
  const isMeant = ({ metadata }: { metadata: ObjectMeta }) =>
    isAll && [undefined, metadata.namespace ?? "default"].includes(namespace);
  const removed = new Set<string>();
  const stop = new AbortController();
  const onSignal = () => stop.abort(new CommandError("interrupted; what was not removed yet stays"));
  process.once("SIGINT", onSignal);
  process.once("SIGTERM", onSignal);
  try {
    const failures = await removePods({
      options,
      environment: process.env,
      logger: warningsTo(io),
      choose: (pods) => {
        const { chosen, missing } = chooseEnginePods(pods, rootDir, wanted);
        problems.push(...missing);
        if (dryRun === "") return chosen;
        for (const { snapshot } of chosen) {
          removed.add(snapshot.uid);
          io.stdout(`pod "${snapshot.name}" deleted${dryRun}\n`);
        }
        return [];
      },
      ...(wanted.graceSeconds !== undefined && { graceSeconds: wanted.graceSeconds }),
      removeLeftovers: isAll,
      isForgotten: ({ object }) => takesWorkloads && isMeant(object),
      onProgress: ({ snapshot }, step) => {
        if (step !== "removed") return;
        removed.add(snapshot.uid);
        // A submitted pod would come back with the next kubelet. Its state file: `ManifestDirectory`.
        rmSync(submittedPath(rootDir, "Pod", snapshot), { force: true });
        rmSync(join(rootDir, `state/api/pods/${snapshot.namespace}_${snapshot.name}.json`), { force: true });
        io.stdout(`pod "${snapshot.name}" deleted\n`);
      },
      signal: stop.signal,
    });
    problems.push(...failures);
    for (const file of isAll ? submittedWorkloads(rootDir, namespace) : []) {
      const workload = `${basename(file, ".yaml").replace("-", ' "')}"`;
      if (takesWorkloads) rmSync(file, { force: true });
      if (takesWorkloads) io.stdout(`${workload} deleted\n`);
      else io.stderr(`${workload} stays: the next kubelet starts its pods again\n`);
    }
  } catch (error) {
    if (error instanceof RootDirectoryError) throw new CommandError(error.message);
    throw error;
  } finally {
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  }
  if (problems.length > 0) throw new CommandError(problems.join("\n"));
  if (removed.size === 0) io.stderr(`No pods found on the root directory "${rootDir}"\n`);
  for (const desired of pods.filter(({ pod }) => removed.has(pod.metadata.uid ?? "")).filter(isThere)) {
    io.stderr(`pod "${desired.pod.metadata.name}" ${describeReturn(desired)}\n`);
  }
  for (const desired of objects.filter(isWorkload).filter((it) => isMeant(it.object) && isThere(it))) {
    const { kind, object } = desired;
    io.stderr(`${kind.toLowerCase()} "${object.metadata.name}" ${describeReturn(desired)}\n`);
  }
  return 0;
}

/** @returns pods, and what to say about names that nothing has */
function chooseEnginePods(pods: readonly EnginePod[], rootDir: string, wanted: Wanted) {
  const { request, isSelected, names, isKindAssumed, inputs } = wanted;
  const nodeNames = new Map(
    pods.map((pod) => [pod, nodeNameOfPod(rootDir, pod.snapshot.name, pod.owner.nodeName)] as const),
  );
  const listed = new Map(pods.map((pod) => [podFullName(pod.snapshot), toNamedPod(pod, nodeNames.get(pod))]));
  const { chosen: named, problems: missing } =
    isSelected || names.length > 0
      ? choosePods(request, [...listed.values()], names)
      : { chosen: [], problems: [] as string[] };
  // `delete srv web`: a misspelled kind must not remove the pod "web".
  if (missing.length > 0 && isKindAssumed && names.length > 1)
    return { chosen: [], missing: [...missing, "nothing was removed"] };
  const full = new Set(named.map(({ metadata }) => podFullName(metadata)));
  const chosen = new Set(pods.filter(({ snapshot }) => full.has(podFullName(snapshot))));
  for (const input of inputs) for (const pod of podsOfManifest(input, nodeNames)) chosen.add(pod);
  if (inputs.length > 0 && chosen.size === 0) {
    const files = inputs.map(({ file }) => file).join(", ");
    missing.push(`no pod of ${files} is here; objects of other kinds are deleted by a running kubelet`);
  }
  return { chosen: [...chosen], missing };
}

/** The parts of a pod by which it is chosen; its labels are on its sandbox. */
function toNamedPod({ snapshot: { name, namespace, sandboxes, containers } }: EnginePod, nodeName?: string): Pod {
  const { labels = {} } = sandboxes[0] ?? containers[0] ?? {};
  return { metadata: { name, namespace, labels }, spec: { nodeName } } as unknown as Pod;
}

/** @param nodeNames the node name that the name of each pod ends with */
function podsOfManifest(input: Wanted["inputs"][number], nodeNames: ReadonlyMap<EnginePod, string>): EnginePod[] {
  return [...new Set(nodeNames.values())].flatMap((nodeName) => {
    const { results } = readManifest(input.bytes, { file: input.file, nodeName, source: "file", strictness: "ignore" });
    const named = new Set(results.flatMap(({ pod }) => (pod ? `${namespaceOf(pod)}/${pod.metadata.name}` : [])));
    return [...nodeNames].flatMap(([pod, name]) =>
      name === nodeName && named.has(`${pod.snapshot.namespace}/${pod.snapshot.name}`) ? pod : [],
    );
  });
}

const warningsTo = (io: CommandIo): Logger => {
  const print = (message: string) => io.stderr(`kubelet-ts delete: ${message}\n`);
  const silent = () => {};
  return { error: print, warn: print, info: silent, debug: silent };
};

/** Between two reads of an object that is being deleted. */
const POLL_MS = 200;
/** Pods with long grace periods take their time. */
const DEFAULT_WAIT_MS = 7 * 24 * 3600_000;

/** Source: meta/v1 `DeletionPropagation`. */
const PROPAGATION: Readonly<Record<string, string>> = {
  background: "Background",
  foreground: "Foreground",
  orphan: "Orphan",
  // As kubectl before 1.20 wrote it.
  true: "Background",
  false: "Orphan",
};

/** `kubelet-ts delete` over the local API of a running kubelet. */
async function deleteByApi(request: CommandRequest, io: CommandIo, graceSeconds: number | undefined): Promise<number> {
  const { value, values, isOn } = request;
  const propagation = PROPAGATION[value("cascade") ?? ""];
  const dryRun = dryRunText(request);
  const isAwaited = values("wait").at(-1) !== "false";
  const timeoutMs = durationFlag(request, "timeout") || DEFAULT_WAIT_MS;
  // Objects that were selected may go while they are deleted.
  const ignoresAbsent = isOn("ignore-not-found") || isOn("all") || value("selector") !== undefined;
  const api = await ApiClient.open(request);
  const problems: string[] = [];
  const onUnserved = (problem: string) => void problems.push(problem);
  const targets = await selectObjects(api, request, { takesFiles: true, verb: "delete", onUnserved });
  if (targets.length === 0 && problems.length === 0) io.stderr("No resources found\n");
  await Promise.all(
    targets.map(async ({ resource, namespace, name }) => {
      try {
        // As kubectl: reports that the deletion has begun, then waits for its end.
        const { metadata } = await api.requireObject(resource, namespace, name);
        const found = metadata.name ?? name;
        const path = api.pathOf(resource, namespace, found);
        await api.json("DELETE", path, {
          apiVersion: "v1",
          kind: "DeleteOptions",
          ...(graceSeconds !== undefined && { gracePeriodSeconds: graceSeconds }),
          ...(propagation && { propagationPolicy: propagation }),
          ...(dryRun !== "" && { dryRun: ["All"] }),
          ...(metadata.uid && { preconditions: { uid: metadata.uid } }),
        });
        const what = referenceOf(resource, found);
        const done = `${graceSeconds === 0 ? "force " : ""}deleted${dryRun}`;
        io.stdout(value("output") === "name" ? `${what}\n` : `${kindOf(resource)} "${found}" ${done}\n`);
        if (isAwaited && dryRun === "") await untilGone(api, path, metadata.uid, { what, timeoutMs });
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        if (error instanceof ApiStatusError && error.code === 404 && ignoresAbsent) return;
        problems.push(error.message);
      }
    }),
  );
  if (problems.length > 0) throw new CommandError(problems.join("\n"));
  return 0;
}

/** An object of the same name with another UID is a successor. */
async function untilGone(
  api: ApiClient,
  path: string,
  uid: string | undefined,
  { what, timeoutMs }: { what: string; timeoutMs: number },
): Promise<void> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const found = await api.find(path);
    if (!found || found.metadata.uid !== uid) return;
    if (Date.now() > end) throw new CommandError(`timed out waiting for the end of ${what}; it is still being deleted`);
    await Bun.sleep(POLL_MS);
  }
}
