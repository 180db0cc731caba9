import type { EphemeralContainer, Pod } from "../../base/api/pod.ts";
import { isRecord } from "../../base/text/json.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import { badRequest, conflict, invalid, methodNotSupported, notFound, STALE, type StatusCause } from "../api-error.ts";
import { type ApiObject, jsonOf, toApiTime } from "../api-object.ts";
import { type ApiRequest, type ApiResponse, json, jsonText } from "../api-request.ts";
import type { ExtraRoute } from "../api-server.ts";
import { PATCH_TYPES, readObjectBody, readPatchBody } from "../body.ts";
import type { ObjectReader } from "../kinds/object-reader.ts";
import type { ObjectStore } from "../object-store.ts";
import { patchObject } from "../patch-object.ts";
import type { RequestInfo } from "../request-info.ts";
import type { LocalApi } from "./local-api.ts";

interface EphemeralContainersDeps {
  api: Pick<LocalApi, "store" | "refreshPods">;
  reader: ObjectReader;
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
  await deps.api.refreshPods();
  const live = find(deps.api.store, info);
  switch (request.method) {
    case "GET":
      return isOldClient(request) ? json(200, toOldKind(live)) : jsonText(200, jsonOf(live));
    case "PUT": {
      const body = await readObjectBody(request);
      if (!isRecord(body)) throw badRequest("the body of the request is not an object");
      const isOld = body.kind === "EphemeralContainers";
      const wanted = isOld ? body.ephemeralContainers : isRecord(body.spec) ? body.spec.ephemeralContainers : undefined;
      const pod = await change(request, live, body.metadata, wanted, deps);
      return isOld ? json(200, toOldKind(pod)) : jsonText(200, jsonOf(pod));
    }
    case "PATCH": {
      const { type, patch } = await readPatchBody(request);
      if (type === PATCH_TYPES.applyYaml)
        throw badRequest("server-side apply to ephemeral containers is not supported");
      const before = isOldClient(request) ? toOldKind(live) : live;
      const next = patchObject(before, type, patch);
      if (!isRecord(next)) throw badRequest("the patch leaves no object");
      const wanted =
        before === live ? (next.spec as Pod["spec"] | undefined)?.ephemeralContainers : next.ephemeralContainers;
      const pod = await change(request, live, next.metadata, wanted, deps);
      return before === live ? jsonText(200, jsonOf(pod)) : json(200, toOldKind(pod));
    }
    default:
      throw methodNotSupported(PODS, request.method.toLowerCase());
  }
}

function find(store: ObjectStore, { namespace, name }: Pick<RequestInfo, "namespace" | "name">): ApiObject {
  const found = store.get("pods", namespace, name);
  if (!found) throw notFound(PODS, name);
  return found;
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
  const containers = decode(live, wanted ?? [], deps.reader);
  if (request.query.getAll("dryRun").includes("All")) {
    return { ...live, spec: { ...(live.spec as object), ephemeralContainers: containers } };
  }
  deps.kubelet.setEphemeralContainers(uid, containers);
  await deps.api.refreshPods();
  return find(deps.api.store, { namespace, name });
}

/** @throws ApiError 422 */
function decode(live: ApiObject, wanted: unknown, reader: ObjectReader): EphemeralContainer[] {
  const { status: _, ...rest } = live;
  const spec = { ...(live.spec as object), ephemeralContainers: wanted };
  const { object, causes, unknown } = reader.read({ ...rest, spec }, true);
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
