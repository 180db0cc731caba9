import { formatSelector, type LabelSelector } from "../base/api/meta.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import { isRecord } from "../base/text/json.ts";
import { parseMediaTypes } from "../base/text/media-types.ts";
import { FairShare, type HttpResponse } from "../server/request-handler.ts";
import {
  ApiError,
  badRequest,
  internalError,
  methodNotSupported,
  notAcceptable,
  notFound,
  type Status,
  tooManyRequests,
  unauthorized,
  unknownPath,
} from "./api-error.ts";
import {
  type ApiRequest,
  type ApiResponse,
  type ApiUser,
  authorize,
  authorizePath,
  checkSender,
  json,
  jsonText,
  PATCH_TYPES,
  type PatchBody,
  parseRequestInfo,
  type RequestInfo,
  readObjectBody,
  readOptionalBody,
  readPatchBody,
  VERBS,
  verbOf,
} from "./api-request.ts";
import type { ExtraResource, ServedResources } from "./discovery.ts";
import { count, specOf, statusOf } from "./kinds/define-kind.ts";
import { toOldEphemeralContainers } from "./kinds/pod-kind.ts";
import { listResponse, parseSelection, watchResponse } from "./list-and-watch.ts";
import type { ObjectAccess } from "./object-commands.ts";
import { parseDeleteOptions } from "./object-deleter.ts";
import type { ApiObject } from "./object-store.ts";
import { parseWriteRequest, type WriteRequest } from "./object-writer.ts";
import { patchObject } from "./patch-object.ts";
import { Presentation } from "./presentation.ts";
import { apiVersionOf, READ_VERBS, resourceId, servedVersions, type Target, type Verb } from "./resource-definition.ts";

/** A path below a resource that is answered by code of its own: `pods/log`, or a review. */
export interface ExtraRoute extends ExtraResource {
  handle: (request: ApiRequest, info: RequestInfo) => ApiResponse | Promise<ApiResponse>;
}

interface ApiServerDeps {
  objects: ObjectAccess;
  /**
   * Why pods may not be as they are shown; undefined while the engine is followed.
   * @param gone a pod that is not there: only if it may run all the same
   */
  podDoubt: (gone?: Pick<RequestInfo, "namespace" | "name">) => string | undefined;
  clock: Clock;
  logger: Logger;
  /** In [0, 1). */
  random: () => number;
  extras: readonly ExtraRoute[];
  /** Paths outside `/api` and `/apis`, and discovery; undefined: not one of them. */
  otherPaths: (
    request: ApiRequest,
    served: ServedResources,
  ) => ApiResponse | undefined | Promise<ApiResponse | undefined>;
}

/** Watches open at a time: each takes 50 kB, and as much again while a change is on its way to all of them. */
const MAX_WATCHES = 256;

/** How long the creation of an object waits for the end of one that has its name, and how often it looks. */
const LEAVING_MS = 10_000;
const LOOK_MS = 100;

/** The Kubernetes API over one store: a function of the request. Never rejects. */
export class ApiServer {
  readonly #deps: ApiServerDeps;
  readonly #served: ServedResources;
  /** Open watches by the name of the user: a client that opens them without end does not keep others from theirs. */
  readonly #watches = new FairShare(MAX_WATCHES);

  constructor(deps: ApiServerDeps) {
    this.#deps = deps;
    this.#served = { definitions: deps.objects.registry.all().flatMap(servedVersions), extras: deps.extras };
  }

  /** @param authenticate the user of the request; undefined is answered with 401 */
  async respond(
    unknown: Omit<ApiRequest, "user">,
    authenticate: () => ApiUser | undefined | Promise<ApiUser | undefined>,
  ): Promise<ApiResponse> {
    const warnings: string[] = [];
    try {
      const user = await authenticate();
      if (!user) throw unauthorized();
      const request = { ...unknown, user };
      checkSender(request);
      const response = await this.#route(request, warnings);
      if (warnings.length === 0 || !("headers" in response)) return response;
      return { ...response, headers: { ...response.headers, Warning: warnings.map(toWarning).join(", ") } };
    } catch (error) {
      if (error instanceof ApiError) return this.#toResponse(error, unknown.path);
      const { path } = unknown;
      this.#deps.logger.error("A request of the local API failed", { path, error: messageOf(error) });
      return json(500, internalError("the request could not be answered; the log has the reason").status);
    }
  }

  async #route(request: ApiRequest, warnings: string[]): Promise<ApiResponse> {
    const info = parseRequestInfo(request.path);
    if (!info) {
      authorizePath(request);
      const response = await this.#deps.otherPaths(request, this.#served);
      if (!response) throw unknownPath();
      return response;
    }
    const { group, version, plural, subresource } = info;
    const name = subresource === "" ? plural : `${plural}/${subresource}`;
    const extra = this.#deps.extras.find((it) => it.group === group && it.version === version && it.name === name);
    if (extra) {
      const verb = VERBS[request.method] ?? "get";
      authorize(request, info, verb);
      if (!extra.verbs.includes(verb)) throw methodNotSupported({ group, plural: name }, verb);
      const forms = parseMediaTypes(request.header("Accept") ?? "");
      // Reviews, metrics and the like have no other form than their own.
      if (forms.length > 0 && forms.every(({ parameters }) => parameters.as !== undefined)) throw notAcceptable();
      return extra.handle(request, info);
    }
    const { objects, clock } = this.#deps;
    const definition = objects.registry.find(group, version, plural);
    if (!definition) throw unknownPath();
    if (definition.namespaced && info.name !== "" && info.namespace === undefined) throw unknownPath();
    if (!definition.namespaced && info.namespace !== undefined) throw unknownPath();
    const verb = verbOf(request, info);
    authorize(request, info, verb);
    if (subresource !== "") {
      const isRead = verb === "get" || (subresource === "status" && definition.observedStatus);
      if (!(isRead ? ["get"] : ["update", "patch"]).includes(verb)) throw methodNotSupported(definition, verb);
      const isFinalize = definition.plural === "namespaces" && subresource === "finalize";
      if (!isFinalize && !definition.subresources?.some((it) => it === subresource)) throw unknownPath();
    } else if (!definition.verbs.includes(verb)) throw methodNotSupported(definition, verb);
    if (verb === "create" && info.name !== "") throw methodNotSupported(definition, "create");
    const shown = subresource === "scale" ? { ...definition, columns: SCALE_COLUMNS } : definition;
    const presentation = new Presentation(request, shown, info, () => clock.now());
    const { deprecation } = presentation.kind;
    const [older, kept] = [presentation.kind, definition].map((it) => `${apiVersionOf(it)} ${it.kind}`);
    if (deprecation !== undefined) warnings.push(`${older} is deprecated in ${deprecation}; use ${kept}`);
    await objects.refresh(definition);
    if (!READ_VERBS.includes(verb)) await objects.prepareWrite();
    const target: Target = { definition, namespace: info.namespace, name: info.name, subresource };
    const call: Call = { request, target, presentation, warn: (message) => void warnings.push(message), repeated: [] };
    const response = await this.#serve(verb, call);
    if (!READ_VERBS.includes(verb)) await objects.storing.settled();
    return response;
  }

  async #serve(verb: Verb, call: Call): Promise<ApiResponse> {
    const { request, target, presentation, repeated } = call;
    const { objects, podDoubt } = this.#deps;
    const { store, writer } = objects;
    const onRepeated = (path: string) => void repeated.push(`duplicate field "${path}"`);
    switch (verb) {
      case "list":
        if (target.definition.fate === "pods" && podDoubt() !== undefined)
          call.warn(`pods may not be as shown: ${podDoubt()}`);
        return listResponse(store, parseSelection(target, request.query), request.query, presentation);
      case "watch": {
        const { clock, random } = this.#deps;
        const deps = { store, clock, random, selection: parseSelection(target, request.query), presentation };
        const response = watchResponse(deps, request.query, request.signal);
        this.#enterWatch(request);
        return response;
      }
      case "get": {
        const found = store.get(resourceId(target.definition), target.namespace, target.name);
        if (!found) throw notFound(target.definition, target.name);
        return this.#object(call, 200, found);
      }
      case "create": {
        const body = inOwnVersion(await readObjectBody(request, onRepeated), call);
        await this.#untilFree(target, body, request.signal);
        return this.#object(call, 201, writer.create(target, body, this.#write(call)));
      }
      case "update": {
        const body = inOwnVersion(await readObjectBody(request, onRepeated), call);
        return this.#update(call, () => body);
      }
      case "patch":
        return this.#patch(call, await readPatchBody(request, onRepeated));
      case "delete":
        return this.#delete(call, await readOptionalBody(request));
      case "deletecollection":
        return this.#deleteCollection(call, await readOptionalBody(request));
    }
  }

  /** A pod that is not there counts as deleted: of one that may run that would be a guess. Clients ask again. */
  #toResponse({ code, status }: ApiError, path: string): HttpResponse {
    const { details } = status;
    const pod = code === 404 && details?.kind === "pods" ? parseRequestInfo(path) : undefined;
    const doubt = pod && this.#deps.podDoubt(pod);
    if (doubt === undefined) return json(code, status);
    const message = `pod "${pod?.name}" has no manifest, and whether it still runs is not known: ${doubt}`;
    const unknown = new ApiError(503, "ServiceUnavailable", message, { ...details, retryAfterSeconds: 1 });
    return json(503, unknown.status, { "Retry-After": "1" });
  }

  /**
   * In a cluster an object that is deleted without grace leaves its name at once: here a creation waits until its containers
   * are gone, for a limited time.
   */
  async #untilFree({ definition, namespace }: Target, body: unknown, signal: AbortSignal): Promise<void> {
    const { objects, clock } = this.#deps;
    const { name } = (isRecord(body) && isRecord(body.metadata) ? body.metadata : {}) as { name?: unknown };
    const isLeaving = () => {
      const live = objects.store.get(resourceId(definition), namespace, String(name));
      return definition.gracefulDeletion && live?.metadata.deletionGracePeriodSeconds === 0;
    };
    for (let waitedMs = 0; waitedMs < LEAVING_MS && isLeaving(); waitedMs += LOOK_MS) {
      await clock.sleep(LOOK_MS, signal).catch(() => {});
      if (signal.aborted) return;
      await objects.refresh(definition);
    }
  }

  /** @throws ApiError 429 */
  #enterWatch({ user, signal }: ApiRequest): void {
    const leave = this.#watches.enter(user.name);
    if (!leave) throw tooManyRequests(`${MAX_WATCHES} watches are open: end some of them first`);
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
  }

  /** Options of a write whose body was read. @throws ApiError 400 */
  #write({ request, warn, repeated }: Call): WriteRequest {
    return { ...parseWriteRequest(request.query, request.header("User-Agent"), warn), repeated };
  }

  /** @param change gets the object as the path shows it to the client */
  #update(call: Call, change: (before: ApiObject) => unknown): HttpResponse {
    const view = viewOf(call);
    const target = view === SCALE ? { ...call.target, subresource: "" } : call.target;
    const changed = view ? (live: ApiObject) => fromView(view, live, change(view.show(live))) : change;
    return this.#object(call, 200, this.#deps.objects.writer.update(target, changed, this.#write(call)));
  }

  async #patch(call: Call, { type, patch }: PatchBody): Promise<HttpResponse> {
    const { target, request, presentation } = call;
    if (type !== PATCH_TYPES.applyYaml) {
      const shown = viewOf(call) ? (view: ApiObject) => view : presentation.show;
      return this.#update(call, (before) => inOwnVersion(patchObject(shown(before), type, patch), call));
    }
    const write = this.#write(call);
    if (viewOf(call))
      throw badRequest(`server-side apply to ${target.subresource} is not supported: apply to the object`);
    if (!request.query.get("fieldManager"))
      throw badRequest("fieldManager: Required value: is required for apply patch");
    const force = request.query.get("force") === "true";
    const result = await this.#deps.objects.writer.apply(target, inOwnVersion(patch, call), { ...write, force });
    return this.#object(call, result.before === undefined ? 201 : 200, result.object);
  }

  #delete(call: Call, body: unknown): HttpResponse {
    const { target, request } = call;
    const { definition, namespace, name } = target;
    const options = parseDeleteOptions(body, request.query, this.#write(call), call.presentation.kind);
    const { store, deleter } = this.#deps.objects;
    const live = store.get(resourceId(definition), namespace, name);
    const result = deleter.delete(target, options);
    const warning = live && !options.dryRun ? definition.deletionWarning?.(live) : undefined;
    if (warning !== undefined) call.warn(warning);
    return isStatus(result) ? json(200, result) : this.#object(call, 200, result);
  }

  async #deleteCollection(call: Call, body: unknown): Promise<HttpResponse> {
    const { target, request, presentation } = call;
    const { definition } = target;
    const options = parseDeleteOptions(body, request.query, this.#write(call), presentation.kind);
    const { resource, namespace, matches } = parseSelection(target, request.query);
    const { store, deleter } = this.#deps.objects;
    const objects = store.list(resource, namespace).filter(matches);
    const refused: ApiError[] = [];
    for (const { metadata } of objects) {
      const { name } = metadata;
      // One deletion may have taken others with it.
      if (!store.get(resource, metadata.namespace, name)) continue;
      try {
        deleter.delete({ definition, namespace: metadata.namespace, name }, options);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        refused.push(error);
      }
    }
    await this.#deps.objects.storing.settled();
    // Those that may be deleted are; the others are named together.
    const [first] = refused;
    if (first) throw new ApiError(first.code, first.reason, refused.map(({ message }) => message).join("; "));
    return json(200, {
      kind: `${definition.kind}List`,
      apiVersion: apiVersionOf(definition),
      metadata: { resourceVersion: String(store.revision) },
      items: objects.map(presentation.show),
    });
  }

  #object(call: Call, status: number, object: ApiObject): HttpResponse {
    const { show } = viewOf(call) ?? call.presentation;
    return jsonText(status, call.presentation.text(show(object)));
  }
}

interface Call {
  request: ApiRequest;
  target: Target;
  presentation: Presentation;
  warn: (message: string) => void;
  /** Findings in the body. */
  repeated: string[];
}

const isStatus = (result: ApiObject | Status): result is Status => isRecord(result) && result.kind === "Status";

/** Source: RFC 7234, 5.5, with the code upstream uses. */
const toWarning = (message: string) =>
  `299 - "${message.replace(/[\x00-\x1f\x7f]/g, " ").replace(/(["\\])/g, "\\$1")}"`;

/** Clients before Kubernetes 1.23 exchange ephemeral containers as a kind of their own. */
function viewOf({ target: { subresource }, request }: Call): View | undefined {
  if (subresource === "scale") return SCALE;
  const isOldClient = /\/v1\.(1\d|2[0-2])\./.test(request.header("User-Agent") ?? "");
  return subresource === "ephemeralcontainers" && isOldClient ? OLD_EPHEMERAL_CONTAINERS : undefined;
}

/** The object with what a client has written by a view of it. */
function fromView(view: View, live: ApiObject, written: unknown): ApiObject {
  const body = isRecord(written) ? written : {};
  const { resourceVersion } = (isRecord(body.metadata) ? body.metadata : {}) as { resourceVersion?: string };
  return { ...live, ...view.read(live, body), metadata: { ...live.metadata, resourceVersion } };
}

/** The body of a request in the version in which objects are kept. */
function inOwnVersion(body: unknown, { target, presentation: { kind } }: Call): unknown {
  if (!isRecord(body) || (body.apiVersion ?? apiVersionOf(kind)) !== apiVersionOf(kind)) return body;
  const object = kind.conversion?.toPreferred(body as ApiObject) ?? body;
  return { ...object, apiVersion: apiVersionOf(target.definition) };
}

/** Another kind as which an object is shown, and written, by a subresource. */
interface View {
  show: (object: ApiObject) => ApiObject;
  /** @throws ApiError 400 */
  read: (live: ApiObject, view: Record<string, unknown>) => object;
}

const SCALE_COLUMNS = [
  count("Desired", (it) => specOf(it).replicas),
  count("Available", (it) => statusOf(it).replicas),
];
const SCALE: View = { show: toScale, read: fromScale };
const OLD_EPHEMERAL_CONTAINERS: View = {
  show: toOldEphemeralContainers,
  read: ({ spec }, { ephemeralContainers }) => ({ spec: { ...(spec as object), ephemeralContainers } }),
};

/** The `scale` of a workload. Source: autoscaling/v1 `Scale`. */
function toScale({ metadata, spec, status }: ApiObject): ApiObject {
  const { replicas = 1, selector = {} } = (spec ?? {}) as { replicas?: number; selector?: LabelSelector };
  const { replicas: current = 0 } = (status ?? {}) as { replicas?: number };
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const text = formatSelector(selector);
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: current, ...(text !== "" && { selector: text }) },
  };
}

/**
 * The workload with the replicas of a Scale.
 * @throws ApiError 400
 */
function fromScale(live: ApiObject, scale: Record<string, unknown>): object {
  const spec = isRecord(scale.spec) ? scale.spec : {};
  const replicas = spec.replicas ?? 0;
  if (!Number.isInteger(replicas) || (replicas as number) < 0) {
    throw badRequest("spec.replicas: Invalid value: must be greater than or equal to 0");
  }
  return { spec: { ...(live.spec as object), replicas } };
}
