import type { Clock } from "../base/model/clock.ts";
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
import { ListCache } from "./list-cache.ts";
import { listResponse, parseIncludeObject, type ShowObject } from "./list-response.ts";
import { negotiateForm, type WantedForm } from "./media-type.ts";
import { type DeleteOptions, type ObjectDeleter, parseDeleteOptions } from "./object-deleter.ts";
import type { ObjectStore } from "./object-store.ts";
import type { ObjectWriter } from "./object-writer.ts";
import { patchObject } from "./patch-object.ts";
import { parseRequestInfo, type RequestInfo } from "./request-info.ts";
import {
  apiVersionOf,
  type ResourceDefinition,
  type ResourceRegistry,
  resourceId,
  servedVersions,
  type Verb,
} from "./resource-definition.ts";
import { fromScale, toScale } from "./scale.ts";
import { parseSelection, type Selection } from "./selection.ts";
import { showFor } from "./shown-object.ts";
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
  registry: ResourceRegistry;
  store: ObjectStore;
  writer: ObjectWriter;
  deleter: ObjectDeleter;
  clock: Clock;
  random: () => number;
  extras: readonly ExtraRoute[];
  /** Paths outside `/api` and `/apis`, and discovery; undefined: not one of them. */
  otherPaths: (
    request: ApiRequest,
    served: ServedResources,
  ) => ApiResponse | undefined | Promise<ApiResponse | undefined>;
  /** Brings objects up to date that are made when they are asked for (the node). */
  refresh?: (definition: ResourceDefinition) => Promise<void>;
  /** Called before a change: loads what writing needs. */
  beforeWrite?: () => Promise<void>;
  /** Called with what went wrong without being the client's fault. */
  onError: (message: string, path: string) => void;
}

/** The Kubernetes API over one store: a function of the request. Never rejects. */
export class ApiServer {
  readonly #deps: ApiServerDeps;
  readonly #served: ServedResources;
  readonly #lists: ListCache;

  constructor(deps: ApiServerDeps) {
    this.#deps = deps;
    this.#lists = new ListCache(deps.clock);
    this.#served = { definitions: deps.registry.all().flatMap(servedVersions), extras: deps.extras };
  }

  async answer(request: ApiRequest): Promise<ApiResponse> {
    const warnings: string[] = [];
    try {
      const answer = await this.#route(request, warnings);
      if (warnings.length === 0 || !("headers" in answer)) return answer;
      return { ...answer, headers: { ...answer.headers, Warning: warnings.map(toWarning).join(", ") } };
    } catch (error) {
      return this.#failure(error, request.path);
    }
  }

  #failure(error: unknown, path: string): PlainResponse {
    if (error instanceof ApiError) return json(error.code, error.status);
    const message = messageOf(error);
    this.#deps.onError(message, path);
    const { status } = internalError("the request could not be answered; the log has the reason");
    return json(500, status);
  }

  async #route(request: ApiRequest, warnings: string[]): Promise<ApiResponse> {
    const info = parseRequestInfo(request.path);
    if (!info) {
      authorizePath(request);
      const answer = await this.#deps.otherPaths(request, this.#served);
      if (!answer) throw unknownPath();
      return answer;
    }
    const { group, version, plural, subresource } = info;
    const name = subresource === "" ? plural : `${plural}/${subresource}`;
    const extra = this.#deps.extras.find((it) => it.group === group && it.version === version && it.name === name);
    if (extra) {
      const verb = extra.verbOf?.(request) ?? VERBS[request.method] ?? "get";
      authorize(request, info, verb);
      return extra.handle(request, info);
    }
    const definition = this.#deps.registry.find(group, version, plural);
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
    await this.#deps.refresh?.(definition);
    if (!READING.has(verb)) await this.#deps.beforeWrite?.();
    const asked = { ...definition, version: info.version };
    const show = showFor(request, definition, asked);
    const warn = (message: string) => void warnings.push(message);
    const repeated: string[] = [];
    const onRepeated = (path: string) => void repeated.push(`duplicate field "${path}"`);
    return this.#serve({ request, info, definition, asked, verb, form, show, warn, repeated, onRepeated });
  }

  async #serve(call: Call): Promise<ApiResponse> {
    const { request, info, definition, asked, verb, form, show } = call;
    const { store, clock, random } = this.#deps;
    switch (verb) {
      case "list":
      case "watch": {
        const selection = parseSelection(definition, info.namespace, info.name, request.query);
        return verb === "list"
          ? this.#list(call, selection)
          : watchResponse({ store, clock, random }, asked, selection, request.query, form, show, request.signal);
      }
      case "get":
        return this.#object(call, 200, this.#find(definition, info));
      case "create": {
        const body = inOwnVersion(await readObjectBody(request, call.onRepeated), call);
        return this.#object(call, 201, this.#deps.writer.create(definition, info.namespace, body, this.#write(call)));
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

  #list({ request, asked, form, show }: Call, selection: Selection): PlainResponse {
    const { store } = this.#deps;
    const { shape, metaVersion } = form;
    const key = [request.path, request.query, shape, metaVersion, asked.isSecret ? request.user.role : ""].join(" ");
    const make = (now: Date) => listResponse(store, asked, selection, request.query, form, show, now);
    return this.#lists.answer(key, store.revision, make);
  }

  #find(definition: ResourceDefinition, { namespace, name }: RequestInfo): ApiObject {
    const found = this.#deps.store.get(resourceId(definition), namespace, name);
    if (!found) throw notFound(definition, name);
    return found;
  }

  /** Call it when the body was read. @throws ApiError 400 */
  #write({ request, warn, repeated, asked }: Call): WriteRequest {
    const write = parseWriteRequest(request.query, request.header("User-Agent"), warn);
    if (repeated.length > 0) reportBadFields(asked, repeated, write);
    return write;
  }

  #update(call: Call, body: unknown): PlainResponse {
    const { info, definition } = call;
    const write = this.#write(call);
    const { writer } = this.#deps;
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
    const { writer } = this.#deps;
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
    const live = this.#deps.store.get(resourceId(definition), info.namespace, info.name);
    const result = this.#deps.deleter.delete(definition, info.namespace, info.name, options);
    const warning = live && !options.dryRun ? definition.deletionWarning?.(live) : undefined;
    if (warning !== undefined) call.warn(warning);
    return isStatus(result) ? json(200, result) : this.#object(call, 200, result);
  }

  #deleteCollection(call: Call, body: unknown): PlainResponse {
    const { info, definition, request, show } = call;
    const options: DeleteOptions = parseDeleteOptions(body, request.query, this.#write(call));
    const { namespace, matches } = parseSelection(definition, info.namespace, "", request.query);
    const { store, deleter } = this.#deps;
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
