import { ApiClient, ApiStatusError } from "../client/api-client.ts";
import { kindOf, type ObjectTarget, referenceOf, selectObjects } from "../client/object-targets.ts";
import { CommandError, type CommandIo, type CommandRequest, dryRunText, durationFlag } from "../sub-command.ts";

/** Between two reads of an object that is being deleted. */
const POLL_MS = 200;
/** Pods with long grace periods take their time. */
const DEFAULT_WAIT_MS = 7 * 24 * 3600_000;

/** Flags of a deletion. */
interface DeletionOptions {
  graceSeconds: number | undefined;
  isForced: boolean;
  /** Source: meta/v1 `DeletionPropagation`. */
  propagation: string | undefined;
  /** As {@link dryRunText}. */
  dryRun: string;
  isAwaited: boolean;
  timeoutMs: number;
  ignoreAbsent: boolean;
  output: string | undefined;
}

const PROPAGATION: Readonly<Record<string, string>> = {
  background: "Background",
  foreground: "Foreground",
  orphan: "Orphan",
  // As kubectl before 1.20 wrote it.
  true: "Background",
  false: "Orphan",
};

/** `kubelet-ts delete` over the local API of a running kubelet. */
export async function deleteByApi(
  request: CommandRequest,
  io: CommandIo,
  graceSeconds: number | undefined,
): Promise<number> {
  const { value, values, isOn } = request;
  const options: DeletionOptions = {
    graceSeconds,
    isForced: graceSeconds === 0,
    propagation: PROPAGATION[value("cascade") ?? ""],
    dryRun: dryRunText(request),
    isAwaited: values("wait").at(-1) !== "false",
    timeoutMs: durationFlag(request, "timeout") || DEFAULT_WAIT_MS,
    // Objects that were selected may go while they are deleted.
    ignoreAbsent: isOn("ignore-not-found") || isOn("all") || value("selector") !== undefined,
    output: value("output"),
  };
  const api = await ApiClient.open(request);
  api.onWarning = (warning) => io.stderr(`Warning: ${warning}\n`);
  const problems: string[] = [];
  const onUnserved = (problem: string) => void problems.push(problem);
  const targets = await selectObjects(api, request, { takesFiles: true, verb: "delete", onUnserved });
  if (targets.length === 0 && problems.length === 0) io.stderr("No resources found\n");
  await Promise.all(
    targets.map(async (target) => {
      try {
        await deleteOne(api, target, options, io);
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        if (error instanceof ApiStatusError && error.code === 404 && options.ignoreAbsent) return;
        problems.push(error.message);
      }
    }),
  );
  if (problems.length > 0) throw new CommandError(problems.join("\n"));
  return 0;
}

/** As kubectl: reports that the deletion has begun, then waits for its end. */
async function deleteOne(
  api: ApiClient,
  { resource, namespace, name }: ObjectTarget,
  options: DeletionOptions,
  io: CommandIo,
): Promise<void> {
  const { metadata } = await api.requireObject(resource, namespace, name);
  const found = metadata.name ?? name;
  const path = api.pathOf(resource, namespace, found);
  await api.json("DELETE", path, {
    apiVersion: "v1",
    kind: "DeleteOptions",
    ...(options.graceSeconds !== undefined && { gracePeriodSeconds: options.graceSeconds }),
    ...(options.propagation && { propagationPolicy: options.propagation }),
    ...(options.dryRun !== "" && { dryRun: ["All"] }),
    ...(metadata.uid && { preconditions: { uid: metadata.uid } }),
  });
  if (options.output === "name") io.stdout(`${referenceOf(resource, found)}\n`);
  else {
    const done = `${options.isForced ? "force " : ""}deleted${options.dryRun}`;
    io.stdout(`${kindOf(resource)} "${found}" ${done}\n`);
  }
  if (options.isAwaited && options.dryRun === "")
    await untilGone(api, path, metadata.uid, { what: referenceOf(resource, found), timeoutMs: options.timeoutMs });
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
