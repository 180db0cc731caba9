import * as v from "valibot";
import { parseDuration } from "./duration.ts";

const API_GROUP = "credentialprovider.kubelet.k8s.io";
const CONFIG_GROUP = "kubelet.config.k8s.io";
const VERSIONS = ["v1", "v1beta1", "v1alpha1"];

const durationMs = v.pipe(
  v.string(),
  v.transform((text) => parseDuration(text) ?? Number.NaN),
  v.check((ms) => ms >= 0, "must be a duration such as 10m"),
);

/** Source: kubelet.config.k8s.io `CredentialProvider`. */
const CredentialProviderSchema = v.object({
  /** File name in the directory of the plugins. */
  name: v.pipe(
    v.string(),
    v.check((name) => name !== "" && name !== "." && name !== ".." && !/[/\s]/.test(name), "must be a file name"),
  ),
  /** Host with globs, optional port and path, e.g. `*.dkr.ecr.*.amazonaws.com`. */
  matchImages: v.pipe(v.array(v.string()), v.minLength(1)),
  defaultCacheDuration: durationMs,
  apiVersion: v.picklist(VERSIONS.map((version) => `${API_GROUP}/${version}`)),
  args: v.nullish(v.array(v.string()), []),
  env: v.nullish(v.array(v.object({ name: v.string(), value: v.nullish(v.string(), "") })), []),
  /** Tokens of service accounts need an API server. */
  tokenAttributes: v.optional(v.never("is not possible without a cluster")),
});
export type CredentialProvider = v.InferOutput<typeof CredentialProviderSchema>;

const ConfigSchema = v.object({
  apiVersion: v.picklist(VERSIONS.map((version) => `${CONFIG_GROUP}/${version}`)),
  kind: v.literal("CredentialProviderConfig"),
  providers: v.pipe(v.array(CredentialProviderSchema), v.minLength(1)),
});

/** Source: credentialprovider.kubelet.k8s.io `CredentialProviderResponse`. */
const ResponseSchema = v.object({
  apiVersion: v.string(),
  kind: v.literal("CredentialProviderResponse"),
  cacheKeyType: v.picklist(["Image", "Registry", "Global"]),
  cacheDuration: v.nullish(durationMs),
  auth: v.nullish(v.record(v.string(), v.object({ username: v.string(), password: v.string() })), {}),
});
export type CredentialProviderResponse = v.InferOutput<typeof ResponseSchema>;

/** Checks `--image-credential-provider-config`, parsed from YAML or JSON. Problems name their field. */
export function parseCredentialProviderConfig(
  value: unknown,
): { ok: true; providers: CredentialProvider[] } | { ok: false; problems: string[] } {
  const result = v.safeParse(ConfigSchema, value);
  if (!result.success) return { ok: false, problems: result.issues.map(problemOf) };
  const names = result.output.providers.map((provider) => provider.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) return { ok: false, problems: [`providers: "${twice}" occurs twice`] };
  return { ok: true, providers: result.output.providers };
}

/** @returns the response, or the field that is malformed (never its values) */
export function parseCredentialProviderResponse(value: unknown): CredentialProviderResponse | string {
  const result = v.safeParse(ResponseSchema, value, { abortEarly: true });
  return result.success ? result.output : (v.getDotPath(result.issues[0]) ?? "the whole");
}

const problemOf = (issue: v.BaseIssue<unknown>) => `${v.getDotPath(issue) ?? "the whole"}: ${issue.message}`;
