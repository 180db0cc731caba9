import { ApiClient, type ApiObject, type ApiResource, ApiStatusError } from "../client/api-client.ts";
import { readManifestObjects } from "../client/manifest-objects.ts";
import type { CommandIo } from "../command-io.ts";
import { CommandError, type CommandRequest, UsageError } from "../sub-command.ts";

/** Something named on the command line or in a manifest. */
interface Target {
  resource: ApiResource;
  namespace: string;
  name: string;
}

/** Between two looks at an object that is being deleted. */
const POLL_MS = 200;
const DEFAULT_WAIT_MS = 10 * 60_000;

/** `kubelet-ts delete` over the local API of a running kubelet. */
export async function deleteByApi(
  request: CommandRequest,
  io: CommandIo,
  graceSeconds: number | undefined,
): Promise<number> {
  const api = await ApiClient.open(request);
  const targets = await targetsOf(api, request);
  const problems: string[] = [];
  await Promise.all(
    targets.map(async (target) => {
      try {
        await deleteOne(api, target, graceSeconds);
        io.stdout(`${target.resource.singularName || target.resource.name} "${target.name}" deleted\n`);
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        if (error instanceof ApiStatusError && error.code === 404 && request.isOn("ignore-not-found")) return;
        problems.push(error.message);
      }
    }),
  );
  if (problems.length > 0) throw new CommandError(problems.join("\n"));
  return 0;
}

async function deleteOne(api: ApiClient, { resource, namespace, name }: Target, graceSeconds: number | undefined) {
  const { metadata } = await api.findObject(resource, namespace, name);
  const path = api.pathOf(resource, namespace, metadata.name ?? name);
  await api.json("DELETE", path, {
    apiVersion: "v1",
    kind: "DeleteOptions",
    ...(graceSeconds !== undefined && { gracePeriodSeconds: graceSeconds }),
    ...(metadata.uid && { preconditions: { uid: metadata.uid } }),
  });
  await untilGone(api, path, metadata.uid);
}

/** An object of the same name with another UID is a successor. */
async function untilGone(api: ApiClient, path: string, uid: string | undefined): Promise<void> {
  const end = Date.now() + DEFAULT_WAIT_MS;
  for (;;) {
    try {
      const { metadata } = await api.json<ApiObject>("GET", path);
      if (metadata.uid !== uid) return;
    } catch (error) {
      if (error instanceof ApiStatusError && error.code === 404) return;
      throw error;
    }
    if (Date.now() > end) throw new CommandError(`"${path}" is still being deleted`);
    await Bun.sleep(POLL_MS);
  }
}

async function targetsOf(api: ApiClient, request: CommandRequest): Promise<Target[]> {
  const { positionals, values, value, isOn } = request;
  const files = values("filename");
  const namespace = value("namespace") ?? "default";
  if (files.length > 0) {
    if (positionals.length > 0 || isOn("all")) throw new UsageError("give names, -f or --all");
    const objects = await readManifestObjects(files);
    return await Promise.all(
      objects.map(async ({ object }) => ({
        resource: await api.resourceOf(object),
        namespace: object.metadata.namespace ?? namespace,
        name: object.metadata.name ?? "",
      })),
    );
  }
  const targets = await readTargets(api, positionals, namespace);
  if (!isOn("all")) {
    if (targets.names.length === 0) throw new UsageError("name what to delete, or give -f FILE");
    return targets.names;
  }
  if (targets.names.length > 0) throw new UsageError("give names or --all, not both");
  if (!targets.kind) throw new UsageError("name a kind with --all, as in: delete pods --all");
  const { items } = await api.json<{ items: ApiObject[] }>("GET", api.pathOf(targets.kind, namespace));
  return items.map(({ metadata }) => ({ resource: targets.kind!, namespace, name: metadata.name ?? "" }));
}

/** `pod a b`, `pod/a svc/b`, or names of pods. */
export async function readTargets(
  api: ApiClient,
  positionals: readonly string[],
  namespace: string,
): Promise<{ kind: ApiResource | undefined; names: Target[] }> {
  const [first = "", ...rest] = positionals;
  if (positionals.some((word) => word.includes("/"))) {
    const names = await Promise.all(
      positionals.map(async (word) => {
        const [kind = "", name = ""] = word.split("/", 2);
        if (name === "") throw new UsageError(`"${word}" has no kind: write pod/${word}`);
        return { resource: await api.findResource(kind), namespace, name };
      }),
    );
    return { kind: undefined, names };
  }
  if (positionals.length === 0) return { kind: undefined, names: [] };
  const kind = await api.findResource(first).catch((error: unknown) => {
    // A first word that is no kind is the name of a pod.
    if (error instanceof UsageError) return undefined;
    throw error;
  });
  const resource = kind ?? (await api.findResource("pods"));
  return { kind, names: (kind ? rest : positionals).map((name) => ({ resource, namespace, name })) };
}
