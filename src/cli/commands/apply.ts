import { writtenPart } from "../../apiserver/object-store.ts";
import { describeIgnoredKind } from "../../manifest/ignored-kinds.ts";
import { ApiClient, type ApiObject, type ApiResource, FIELD_MANAGER } from "../client/api-client.ts";
import { readManifestObjects } from "../client/manifest-inputs.ts";
import { referenceOf, refuseSecond } from "../client/object-targets.ts";
import { CommandError, type CommandIo, type CommandRequest, dryRunText } from "../sub-command.ts";

/** Words of `--validate`, as kubectl takes them. Source: meta/v1 `FieldValidation`. */
const FIELD_VALIDATION: Readonly<Record<string, string>> = {
  strict: "Strict",
  warn: "Warn",
  ignore: "Ignore",
  true: "Strict",
  false: "Ignore",
};

/** `kubelet-ts apply -f`: server-side apply of every object; one that fails does not keep the others back. */
export const runApply = (request: CommandRequest, io: CommandIo): Promise<number> => submit(request, io, applyOne);

/** `kubelet-ts create -f`. */
export const runCreate = (request: CommandRequest, io: CommandIo): Promise<number> => submit(request, io, createOne);

interface Submission {
  api: ApiClient;
  resource: ApiResource;
  object: ApiObject;
  namespace: string;
  /** `?dryRun=All&fieldValidation=Strict` and the like. */
  query: URLSearchParams;
}

/** `created`, `configured`, `unchanged`. */
type Submit = (submission: Submission) => Promise<{ outcome: string; object: ApiObject }>;

async function submit(request: CommandRequest, io: CommandIo, one: Submit): Promise<number> {
  const { values, value } = request;
  const objects = await readManifestObjects(values("filename"), request.isOn("recursive"));
  const api = await ApiClient.open(request, "Nothing supervises pods yet, so nothing can be submitted");
  const problems: string[] = [];
  for (const { file, object } of objects) {
    const name = `${object.kind ?? ""} "${object.metadata.name ?? object.metadata.generateName ?? ""}"`;
    try {
      const resource = await servedResource(api, object);
      if (typeof resource === "string") {
        api.warn(`${file}: ${name}: ${resource}`);
        continue;
      }
      const namespace = object.metadata.namespace ?? value("namespace") ?? "default";
      const { name: written } = object.metadata;
      if (written !== undefined) await refuseSecond(api, { resource, namespace, name: written }, one === createOne);
      const dryRun = dryRunText(request);
      const query = new URLSearchParams({
        fieldValidation: FIELD_VALIDATION[value("validate") ?? ""] ?? "Strict",
        ...(dryRun !== "" && { dryRun: "All" }),
      });
      const { outcome, object: response } = await one({ api, resource, object, namespace, query });
      const reference = referenceOf(resource, response.metadata.name ?? "");
      if (value("output") === "name") io.stdout(`${reference}\n`);
      else if (value("output") === "json") io.stdout(`${JSON.stringify(response, null, 4)}\n`);
      else if (value("output") === "yaml") io.stdout(`---\n${await toYaml(response)}`);
      else io.stdout(`${reference} ${outcome}${dryRun}\n`);
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      problems.push(`${file}: ${name}: ${error.message}`);
    }
  }
  if (problems.length > 0) throw new CommandError(problems.join("\n"));
  return 0;
}

/** The kind of an object; for kinds without effect on one node, which are not served, the reason. @throws CommandError */
async function servedResource(api: ApiClient, object: ApiObject): Promise<ApiResource | string> {
  try {
    return await api.resourceOf(object);
  } catch (error) {
    const reason = error instanceof CommandError && describeIgnoredKind(object.kind ?? "", object.apiVersion ?? "");
    if (!reason) throw error;
    return reason;
  }
}

async function applyOne({ api, resource, object, namespace, query }: Submission): ReturnType<Submit> {
  const { name } = object.metadata;
  if (name === undefined)
    throw new CommandError("metadata.name is missing; an object with generateName is created, not applied");
  const path = api.pathOf(resource, namespace, name);
  const before = await api.find(path);
  const response = await api.applyObject(path, toSubmittable(object, namespace, resource.namespaced), query);
  if (!before) return { outcome: "created", object: response };
  const isSame = Bun.deepEquals(writtenPart(before), writtenPart(response));
  return { outcome: isSame ? "unchanged" : "configured", object: response };
}

async function createOne({ api, resource, object, namespace, query }: Submission): ReturnType<Submit> {
  query.set("fieldManager", FIELD_MANAGER);
  const path = `${api.pathOf(resource, namespace)}?${query}`;
  const response = await api.json<ApiObject>("POST", path, toSubmittable(object, namespace, resource.namespaced));
  return { outcome: "created", object: response };
}

/** Requests carry the namespace they are sent to. */
const toSubmittable = (object: ApiObject, namespace: string, isNamespaced: boolean): ApiObject =>
  isNamespaced ? { ...object, metadata: { ...object.metadata, namespace } } : object;

async function toYaml(value: unknown): Promise<string> {
  return (await import("../../base/text/write-yaml.ts")).writeYaml(value);
}
