import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import { isRecord } from "../base/text/json.ts";
import {
  ApiError,
  badRequest,
  internalError,
  methodNotSupported,
  notAcceptable,
  notFound,
  type Status,
  unknownPath,
} from "./api-error.ts";
import { type ApiObject, jsonOf } from "./api-object.ts";
import { type ApiRequest, type ApiResponse, json, jsonText, type PlainResponse } from "./api-request.ts";
import { authorize, authorizePath, VERBS, verbOf } from "./authorization.ts";
import {
  type OnRepeatedField,
  PATCH_TYPES,
  type PatchBody,
  readObjectBody,
  readOptionalBody,
  readPatchBody,
} from "./body.ts";
import type { ExtraResource, ServedResources } from "./discovery.ts";
import { listResponse, parseIncludeObject, type ShowObject } from "./list-response.ts";
import { negotiateForm, type WantedForm } from "./media-type.ts";
import type { ObjectAccess } from "./object-commands.ts";
import { type DeleteOptions, parseDeleteOptions } from "./object-deleter.ts";
import { patchObject } from "./patch-object.ts";
import { parseRequestInfo, type RequestInfo } from "./request-info.ts";
import { apiVersionOf, type ResourceDefinition, resourceId, servedVersions, type Verb } from "./resource-definition.ts";
import { parseSelection } from "./selection.ts";
import { metadataText, tableText } from "./table.ts";
import { watchResponse } from "./watch-response.ts";
import { parseWriteRequest, reportBadFields, type WriteRequest } from "./write-request.ts";

/** A path below a resource that is answered by code of its own: `pods/log`, or a review. */
export interface ExtraRoute extends ExtraResource {
  /** Which verb a request is, for authorization; default: by method. */
  verbOf?: (request: ApiRequest) => string;
  handle: (request: ApiRequest, info: RequestInfo) => ApiResponse | Promise<ApiResponse>;
}

interface ApiServerDeps {
  objects: ObjectAccess;
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

/** The Kubernetes API over one store: a function of the request. Never rejects. */
export class ApiServer {
  readonly #deps: ApiServerDeps;
  readonly #served: ServedResources;

  constructor(deps: ApiServerDeps) {
    this.#deps = deps;
    this.#served = { definitions: deps.objects.registry.all().flatMap(servedVersions), extras: deps.extras };
  }

  async respond(request: ApiRequest): Promise<ApiResponse> {
    const warnings: string[] = [];
    try {
      const response = await this.#route(request, warnings);
      if (warnings.length === 0 || !("headers" in response)) return response;
      return { ...response, headers: { ...response.headers, Warning: warnings.map(toWarning).join(", ") } };
    } catch (error) {
      return this.#failure(error, request.path);
    }
  }

  #failure(error: unknown, path: string): PlainResponse {
    if (error instanceof ApiError) return json(error.code, error.status);
    const message = messageOf(error);
    this.#deps.logger.error("A request of the local API failed", { path, error: message });
    const { status } = internalError("the request could not be answered; the log has the reason");
    return json(500, status);
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
      const verb = extra.verbOf?.(request) ?? VERBS[request.method] ?? "get";
      authorize(request, info, verb);
      return extra.handle(request, info);
    }
    const definition = this.#deps.objects.registry.find(group, version, plural);
    if (!definition) throw unknownPath();
    const isCreate = request.method === "POST" && subresource === "";
    if (definition.namespaced && info.name !== "" && info.namespace === undefined) throw unknownPath();
    if (!definition.namespaced && info.namespace !== undefined) throw unknownPath();
    const verb = verbOf(request, info);
    authorize(request, info, verb);
    if (subresource !== "") {
      if (subresource === "status" && definition.observedStatus && verb !== "get") {
        throw methodNotSupported(definition, verb);
      }
      const isFinalize = definition.plural === "namespaces" && subresource === "finalize";
      if (!isFinalize && !definition.subresources?.some((it) => it === subresource)) throw unknownPath();
    } else if (!definition.verbs.includes(verb)) throw methodNotSupported(definition, verb);
    if (isCreate && info.name !== "") throw methodNotSupported(definition, "create");
    const form = negotiateForm(request.header("Accept"));
    if (!form) throw notAcceptable();
    await this.#deps.objects.refresh(definition);
    if (!READING.has(verb)) await this.#deps.objects.prepareWrite();
    const asked = { ...definition, version: info.version };
    const show = showFor(request, definition, asked);
    const warn = (message: string) => void warnings.push(message);
    const repeated: string[] = [];
    const onRepeated = (path: string) => void repeated.push(`duplicate field "${path}"`);
    return this.#serve({ request, info, definition, asked, verb, form, show, warn, repeated, onRepeated });
  }

  async #serve(call: Call): Promise<ApiResponse> {
    const { request, info, definition, asked, verb, form, show } = call;
    const { objects, clock, random } = this.#deps;
    switch (verb) {
      case "list":
      case "watch": {
        const selection = parseSelection(definition, info.namespace, info.name, request.query);
        return verb === "list"
          ? listResponse(objects.store, asked, selection, request.query, form, show, clock.now())
          : watchResponse(
              { store: objects.store, clock, random },
              asked,
              selection,
              request.query,
              form,
              show,
              request.signal,
            );
      }
      case "get":
        return this.#object(call, 200, this.#find(definition, info));
      case "create": {
        const body = inOwnVersion(await readObjectBody(request, call.onRepeated), call);
        return this.#object(
          call,
          201,
          this.#deps.objects.writer.create(definition, info.namespace, body, this.#write(call)),
        );
      }
      case "update":
        return this.#update(call, inOwnVersion(await readObjectBody(request, call.onRepeated), call));
      case "patch":
        return this.#patch(call, await readPatchBody(request, call.onRepeated));
      case "delete":
        return this.#delete(call, await readOptionalBody(request));
      case "deletecollection":
        return this.#deleteCollection(call, await readOptionalBody(request));
    }
  }

  #find(definition: ResourceDefinition, { namespace, name }: RequestInfo): ApiObject {
    const found = this.#deps.objects.store.get(resourceId(definition), namespace, name);
    if (!found) throw notFound(definition, name);
    return found;
  }

  /** Options of a write whose body was read. @throws ApiError 400 */
  #write({ request, warn, repeated, asked }: Call): WriteRequest {
    const write = parseWriteRequest(request.query, request.header("User-Agent"), warn);
    if (repeated.length > 0) reportBadFields(asked, repeated, write);
    return write;
  }

  #update(call: Call, body: unknown): PlainResponse {
    const { info, definition } = call;
    const write = this.#write(call);
    const { writer } = this.#deps.objects;
    if (info.subresource !== "scale") {
      return this.#object(
        call,
        200,
        writer.update(definition, info.namespace, info.name, body, write, info.subresource),
      );
    }
    const change = (live: ApiObject) => fromScale(live, body);
    return this.#object(call, 200, writer.patch(definition, info.namespace, info.name, change, write));
  }

  #patch(call: Call, { type, patch }: PatchBody): PlainResponse {
    const { info, definition, request } = call;
    const write = this.#write(call);
    const { writer } = this.#deps.objects;
    const { namespace, name, subresource } = info;
    if (type === PATCH_TYPES.applyYaml) {
      if (subresource === "scale")
        throw badRequest("server-side apply to a scale is not supported: apply to the object");
      if (!request.query.get("fieldManager"))
        throw badRequest("fieldManager: Required value: is required for apply patch");
      const force = request.query.get("force") === "true";
      const result = writer.apply(
        definition,
        namespace,
        name,
        inOwnVersion(patch, call),
        { ...write, force },
        subresource,
      );
      return this.#object(call, result.created ? 201 : 200, result.object);
    }
    const change = (live: ApiObject): unknown => {
      const before = subresource === "scale" ? toScale(live) : live;
      const next = inOwnVersion(patchObject(before, type, patch), call);
      return subresource === "scale" ? fromScale(live, next) : next;
    };
    const from = subresource === "scale" ? "" : subresource;
    return this.#object(call, 200, writer.patch(definition, namespace, name, change, write, from));
  }

  #delete(call: Call, body: unknown): PlainResponse {
    const { info, definition, request } = call;
    const options = parseDeleteOptions(body, request.query, this.#write(call));
    const live = this.#deps.objects.store.get(resourceId(definition), info.namespace, info.name);
    const result = this.#deps.objects.deleter.delete(definition, info.namespace, info.name, options);
    const warning = live && !options.dryRun ? definition.deletionWarning?.(live) : undefined;
    if (warning !== undefined) call.warn(warning);
    return isStatus(result) ? json(200, result) : this.#object(call, 200, result);
  }

  #deleteCollection(call: Call, body: unknown): PlainResponse {
    const { info, definition, request, show } = call;
    const options: DeleteOptions = parseDeleteOptions(body, request.query, this.#write(call));
    const { namespace, matches } = parseSelection(definition, info.namespace, "", request.query);
    const { store, deleter } = this.#deps.objects;
    const objects = store.list(resourceId(definition), namespace).filter(matches);
    for (const { metadata } of objects) {
      // One deletion may have taken others with it.
      if (store.get(resourceId(definition), metadata.namespace, metadata.name)) {
        deleter.delete(definition, metadata.namespace, metadata.name, options);
      }
    }
    return json(200, {
      kind: `${definition.kind}List`,
      apiVersion: definition.group === "" ? definition.version : `${definition.group}/${definition.version}`,
      metadata: { resourceVersion: String(store.revision) },
      items: objects.map(show),
    });
  }

  #object({ definition, form, show, info, request }: Call, status: number, object: ApiObject): PlainResponse {
    if (info.subresource === "scale") return json(status, toScale(object));
    const shown = show(object);
    if (form.shape === "table") {
      const includeObject = parseIncludeObject(request.query);
      const { resourceVersion } = shown.metadata;
      const options = { metaVersion: form.metaVersion, includeObject, now: this.#deps.clock.now() };
      return jsonText(status, tableText([shown], definition, { resourceVersion }, options));
    }
    return jsonText(status, form.shape === "metadata" ? metadataText(shown, form.metaVersion) : jsonOf(shown));
  }
}

interface Call {
  request: ApiRequest;
  info: RequestInfo;
  definition: ResourceDefinition;
  /** The definition in the version of the request. */
  asked: ResourceDefinition;
  verb: Verb;
  form: WantedForm;
  show: ShowObject;
  warn: (message: string) => void;
  /** Findings in the body. */
  repeated: readonly string[];
  onRepeated: OnRepeatedField;
}

const READING = new Set<Verb>(["get", "list", "watch"]);

const isStatus = (result: ApiObject | Status): result is Status => isRecord(result) && result.kind === "Status";

/** Source: RFC 7234, 5.5, with the code upstream uses. */
const toWarning = (message: string) =>
  `299 - "${message.replace(/[\x00-\x1f\x7f]/g, " ").replace(/(["\\])/g, "\\$1")}"`;

/** The body of a request in the version in which objects are kept. */
const inOwnVersion = (body: unknown, { definition, asked }: Pick<Call, "definition" | "asked">): unknown =>
  isRecord(body) && body.apiVersion === apiVersionOf(asked) ? { ...body, apiVersion: apiVersionOf(definition) } : body;

/**
 * How objects are shown to a user: Secrets without values for users with read access only.
 * @param asked the definition in the version of the request
 */
function showFor(
  { user }: Pick<ApiRequest, "user">,
  definition: ResourceDefinition,
  asked: ResourceDefinition,
): ShowObject {
  if (definition.isSecret && user.role !== "admin") return hideSecrets;
  const complete = definition.complete ?? ((object: ApiObject) => object);
  if (asked.version === definition.version) return complete;
  return (object) => ({ ...complete(object), apiVersion: apiVersionOf(asked) });
}

const shown = new WeakMap<ApiObject, ApiObject>();

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** A Secret for users with read access only: its keys without values. */
function hideSecrets(secret: ApiObject): ApiObject {
  let hidden = shown.get(secret);
  if (hidden === undefined) {
    const keys = Object.keys((secret.data as Record<string, string> | undefined) ?? {});
    // The last-applied annotation holds the values too.
    const { [LAST_APPLIED]: _applied, ...annotations } = secret.metadata.annotations ?? {};
    const { annotations: _annotations, ...metadata } = secret.metadata;
    hidden = {
      ...secret,
      metadata: { ...metadata, ...(Object.keys(annotations).length > 0 && { annotations }) },
      data: Object.fromEntries(keys.map((key) => [key, ""])),
    } as ApiObject;
    shown.set(secret, hidden);
  }
  return hidden;
}

/** The `scale` of a workload. Source: autoscaling/v1 `Scale`. */
function toScale({ metadata, spec, status }: ApiObject): object {
  const { replicas = 1, selector } = (spec ?? {}) as { replicas?: number; selector?: unknown };
  const { replicas: current = 0 } = (status ?? {}) as { replicas?: number };
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const text = selectorText(selector);
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
function fromScale(live: ApiObject, scale: unknown): ApiObject {
  const spec = isRecord(scale) && isRecord(scale.spec) ? scale.spec : {};
  const replicas = spec.replicas ?? 0;
  if (!Number.isInteger(replicas) || (replicas as number) < 0) {
    throw badRequest("spec.replicas: Invalid value: must be greater than or equal to 0");
  }
  const metadata = isRecord(scale) && isRecord(scale.metadata) ? scale.metadata : {};
  const { resourceVersion } = metadata as { resourceVersion?: string };
  return {
    ...live,
    metadata: { ...live.metadata, resourceVersion },
    spec: { ...(live.spec as object), replicas },
  };
}

function selectorText(selector: unknown): string {
  if (!isRecord(selector)) return "";
  const { matchLabels, matchExpressions } = selector;
  const labels = Object.entries(isRecord(matchLabels) ? matchLabels : {}).map(
    ([key, value]) => `${key}=${String(value)}`,
  );
  const expressions = (Array.isArray(matchExpressions) ? matchExpressions : []).map(
    ({ key, operator, values = [] }: { key: string; operator: string; values?: string[] }) => {
      if (operator === "Exists") return key;
      if (operator === "DoesNotExist") return `!${key}`;
      return `${key} ${operator === "In" ? "in" : "notin"} (${values.join(",")})`;
    },
  );
  return [...labels.sort(), ...expressions].join(",");
}
