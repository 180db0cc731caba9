import type { EphemeralContainer, Pod } from "../../base/api/pod.ts";
import { toApiTime } from "../../base/text/api-time.ts";
import { isRecord } from "../../base/text/json.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import { badRequest, conflict, invalid, STALE, type StatusCause } from "../api-error.ts";
import {
  type ApiRequest,
  type ApiResponse,
  json,
  jsonText,
  PATCH_TYPES,
  type RequestInfo,
  readObjectBody,
  readPatchBody,
} from "../api-request.ts";
import type { ExtraRoute } from "../api-server.ts";
import { readObject } from "../kinds/define-kind.ts";
import { type ApiObject, jsonOf } from "../object-store.ts";
import { patchObject } from "../patch-object.ts";
import type { ReadOptions } from "../resource-definition.ts";
import type { LocalApi } from "./local-api.ts";

interface EphemeralContainersDeps {
  api: Pick<LocalApi, "find">;
  readOptions: ReadOptions;
  kubelet: Pick<Kubelet, "setEphemeralContainers">;
}

const PODS = { group: "", plural: "pods" };
const FIELD = "spec.ephemeralContainers";

/**
 * `ephemeralcontainers` of pods, for pods of every source: the containers belong to the running pod, so no manifest
 * changes. Clients before Kubernetes 1.23 exchange the kind `EphemeralContainers`, later ones the pod.
 */
export const ephemeralContainersRoute = (deps: EphemeralContainersDeps): ExtraRoute => ({
  group: "",
  version: "v1",
  name: "pods/ephemeralcontainers",
  kind: "Pod",
  namespaced: true,
  verbs: ["get", "patch", "update"],
  handle: (request, info) => handle(request, info, deps),
});

async function handle(request: ApiRequest, info: RequestInfo, deps: EphemeralContainersDeps): Promise<ApiResponse> {
  const live = await deps.api.find("pods", info);
  let next: unknown = live;
  let isOld = isOldClient(request);
  if (request.method === "PUT") {
    next = await readObjectBody(request);
    isOld = isRecord(next) && next.kind === "EphemeralContainers";
  } else if (request.method === "PATCH") {
    const { type, patch } = await readPatchBody(request);
    if (type === PATCH_TYPES.applyYaml) throw badRequest("server-side apply to ephemeral containers is not supported");
    next = patchObject(isOld ? toOldKind(live) : live, type, patch);
  }
  if (!isRecord(next)) throw badRequest("the body of the request, or what the patch leaves, is not an object");
  const spec = isRecord(next.spec) ? next.spec : {};
  const wanted = isOld ? next.ephemeralContainers : spec.ephemeralContainers;
  const pod = next === live ? live : await change(request, live, next.metadata, wanted, deps);
  return isOld ? json(200, toOldKind(pod)) : jsonText(200, jsonOf(pod));
}

/** @throws ApiError 409, 422 */
async function change(
  request: ApiRequest,
  live: ApiObject,
  metadata: unknown,
  wanted: unknown,
  deps: EphemeralContainersDeps,
): Promise<ApiObject> {
  const { name, namespace, uid = "", resourceVersion } = live.metadata;
  const sent = isRecord(metadata) ? metadata.resourceVersion : undefined;
  if (sent && sent !== resourceVersion) throw conflict(PODS, name, STALE);
  const containers = decode(live, wanted ?? [], deps.readOptions);
  if (request.query.getAll("dryRun").includes("All")) {
    return { ...live, spec: { ...(live.spec as object), ephemeralContainers: containers } };
  }
  deps.kubelet.setEphemeralContainers(uid, containers);
  return deps.api.find("pods", { namespace, name });
}

/** @throws ApiError 422 */
function decode(live: ApiObject, wanted: unknown, options: ReadOptions): EphemeralContainer[] {
  const { status: _, ...rest } = live;
  const spec = { ...(live.spec as object), ephemeralContainers: wanted };
  const { object, causes, unknown } = readObject({ ...rest, spec }, options, true);
  // The pod runs: only what was added is judged.
  const own = [
    ...causes.filter(({ field = "" }) => field.startsWith(FIELD)),
    ...unknown
      .filter((message) => message.includes(FIELD))
      .map((message) => ({ reason: "FieldValueInvalid", field: FIELD, message: `Invalid value: ${message}` })),
  ];
  const { name } = live.metadata;
  if (own.length > 0) throw invalid("", "Pod", name, own);
  const containers = (object as unknown as Pod).spec.ephemeralContainers ?? [];
  const before = (live as unknown as Pod).spec.ephemeralContainers ?? [];
  const lost = before.flatMap((container) => refuseLoss(container, containers));
  if (lost.length > 0) throw invalid("", "Pod", name, lost);
  return containers;
}

/** Source: core validation `ValidatePodEphemeralContainersUpdate`. */
function refuseLoss(before: EphemeralContainer, after: readonly EphemeralContainer[]): StatusCause[] {
  const same = after.find(({ name }) => name === before.name);
  if (same && Bun.deepEquals(same, before)) return [];
  const message = `Forbidden: existing ephemeral containers "${before.name}" may not be ${same ? "changed" : "removed"}`;
  return [{ reason: "FieldValueForbidden", field: FIELD, message }];
}

const isOldClient = (request: ApiRequest) => /\/v1\.(1\d|2[0-2])\./.test(request.header("User-Agent") ?? "");

/** Source: core/v1 `EphemeralContainers` of Kubernetes 1.16 to 1.22. */
const toOldKind = ({ metadata, spec }: ApiObject) => ({
  kind: "EphemeralContainers",
  apiVersion: "v1",
  metadata: {
    name: metadata.name,
    namespace: metadata.namespace,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    creationTimestamp: metadata.creationTimestamp ?? toApiTime(new Date(0)),
  },
  ephemeralContainers: (spec as Pod["spec"]).ephemeralContainers ?? [],
});
