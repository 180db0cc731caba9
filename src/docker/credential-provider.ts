import * as v from "valibot";
import { readBoundedText, SYSTEM_FILE_BYTES } from "../base/files/whole-file.ts";
import { runProgram } from "../base/host/run-program.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { parseDuration } from "../base/text/duration.ts";
import { messageOf } from "../base/text/error-message.ts";
import { fullNameOf, type ImageReference, repositoryOf } from "../base/text/image-reference.ts";
import { jsonIfValid } from "../base/text/json.ts";
import { readDocument } from "../manifest/yaml/parse-stream.ts";
import { type RegistryCredential, registryMatches } from "./engine/docker-config.ts";

const versionsOf = (group: string) => v.picklist(["v1", "v1beta1", "v1alpha1"].map((version) => `${group}/${version}`));

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
  apiVersion: versionsOf("credentialprovider.kubelet.k8s.io"),
  args: v.nullish(v.array(v.string()), []),
  env: v.nullish(v.array(v.object({ name: v.string(), value: v.nullish(v.string(), "") })), []),
  /** Tokens of service accounts need an API server. */
  tokenAttributes: v.optional(v.never("is not possible without a cluster")),
});
type CredentialProvider = v.InferOutput<typeof CredentialProviderSchema>;

const nameTwice = (providers: readonly CredentialProvider[]) =>
  providers.map(({ name }) => name).find((name, index, names) => names.indexOf(name) !== index);

const ConfigSchema = v.object({
  apiVersion: versionsOf("kubelet.config.k8s.io"),
  kind: v.literal("CredentialProviderConfig"),
  providers: v.pipe(
    v.array(CredentialProviderSchema),
    v.minLength(1),
    v.check(
      (providers) => nameTwice(providers) === undefined,
      ({ input }) => `"${nameTwice(input)}" occurs twice`,
    ),
  ),
});

/** Source: credentialprovider.kubelet.k8s.io `CredentialProviderResponse`. */
const ResponseSchema = v.object({
  apiVersion: v.string(),
  kind: v.literal("CredentialProviderResponse"),
  cacheKeyType: v.picklist(["Image", "Registry", "Global"]),
  cacheDuration: v.nullish(durationMs),
  auth: v.nullish(v.record(v.string(), v.object({ username: v.string(), password: v.string() })), {}),
});

const PLUGIN_TIMEOUT_MS = 60_000;
const PLUGIN_MAX_BYTES = 1024 * 1024;

/** The kubelet's credential-provider plugins. Source: k8s.io/kubernetes/pkg/credentialprovider/plugin. */
export class CredentialProviders {
  readonly #providers: readonly CredentialProvider[];
  readonly #binDir: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** Cached responses by provider, kind of key and key. */
  readonly #cache = new Map<string, { entries: RegistryCredential[]; expiresAtMs: number }>();

  private constructor(providers: readonly CredentialProvider[], binDir: string, clock: Clock, logger: Logger) {
    this.#providers = providers;
    this.#binDir = binDir;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Reads `--image-credential-provider-config`, YAML or JSON. @throws Error naming the file and the field */
  static fromFile(path: string, binDir: string, clock: Clock, logger: Logger): CredentialProviders {
    let config: unknown;
    try {
      config = readDocument(Buffer.from(readBoundedText(path, SYSTEM_FILE_BYTES)), path);
    } catch (cause) {
      throw new Error(`Credential provider configuration ${path} cannot be read: ${messageOf(cause)}`, { cause });
    }
    const result = v.safeParse(ConfigSchema, config);
    if (result.success) return new CredentialProviders(result.output.providers, binDir, clock, logger);
    const problems = result.issues.map((issue) => `${v.getDotPath(issue) ?? "the whole"}: ${issue.message}`);
    throw new Error(`Credential provider configuration ${path}: ${problems.join("; ")}`);
  }

  /** Asks the plugins for credentials of an image; a plugin that fails is logged and skipped. */
  async ask(reference: ImageReference, signal: AbortSignal | undefined): Promise<RegistryCredential[]> {
    const image = repositoryOf(reference);
    const found: RegistryCredential[] = [];
    for (const provider of this.#providers) {
      if (!provider.matchImages.some((match) => registryMatches(match, image))) continue;
      try {
        found.push(...(await this.#askOne(provider, reference, signal)));
      } catch (error) {
        signal?.throwIfAborted();
        this.#logger.warn(`Credential provider "${provider.name}" failed: ${messageOf(error)}`, { image });
      }
    }
    return found;
  }

  async #askOne(
    provider: CredentialProvider,
    reference: ImageReference,
    signal: AbortSignal | undefined,
  ): Promise<RegistryCredential[]> {
    const image = fullNameOf(reference);
    const keys = {
      Image: `${provider.name}\nImage\n${image}`,
      Registry: `${provider.name}\nRegistry\n${reference.domain}`,
      Global: `${provider.name}\nGlobal`,
    };
    const now = this.#clock.monotonicMs();
    for (const key of Object.values(keys)) {
      const cached = this.#cache.get(key);
      if (cached && cached.expiresAtMs > now) return cached.entries;
      this.#cache.delete(key);
    }
    const response = await this.#run(provider, image, signal);
    const entries = Object.entries(response.auth).map(([registry, auth]) => ({ registry, auth }));
    const keepMs = response.cacheDuration ?? provider.defaultCacheDuration;
    if (keepMs > 0) {
      this.#cache.set(keys[response.cacheKeyType], { entries, expiresAtMs: this.#clock.monotonicMs() + keepMs });
    }
    return entries;
  }

  async #run(provider: CredentialProvider, image: string, signal: AbortSignal | undefined) {
    const outcome = await runProgram([`${this.#binDir}/${provider.name}`, ...provider.args], {
      input: JSON.stringify({ apiVersion: provider.apiVersion, kind: "CredentialProviderRequest", image }),
      env: Object.fromEntries(provider.env.map(({ name, value }) => [name, value])),
      timeoutMs: PLUGIN_TIMEOUT_MS,
      maxBytes: PLUGIN_MAX_BYTES,
      signal,
    });
    if (outcome.exitCode !== 0) {
      throw new Error(`it ended with ${outcome.exitCode}: ${outcome.stderr.trim().slice(0, 200)}`);
    }
    const json = jsonIfValid(outcome.stdout);
    if (json === undefined) throw new Error("its response is not JSON");
    const { success, output, issues } = v.safeParse(ResponseSchema, json, { abortEarly: true });
    // The field, never its value.
    if (!success) {
      throw new Error(`its response is no CredentialProviderResponse: ${v.getDotPath(issues[0]) ?? "the whole"}`);
    }
    if (output.apiVersion !== provider.apiVersion) {
      throw new Error(`it responded in ${output.apiVersion.slice(0, 100)}, not in ${provider.apiVersion}`);
    }
    return output;
  }
}
