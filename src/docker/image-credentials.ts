import * as v from "valibot";
import type { Secret } from "../base/api/config-objects.ts";
import { readBoundedText, SYSTEM_FILE_BYTES, type TextFiles } from "../base/files/whole-file.ts";
import { runProgram } from "../base/host/run-program.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import type { RegistryAuth } from "../base/model/registry-auth.ts";
import { parseDuration } from "../base/text/duration.ts";
import { messageOf } from "../base/text/error-message.ts";
import { fullNameOf, type ImageReference, repositoryOf } from "../base/text/image-reference.ts";
import { isRecord, jsonIfValid } from "../base/text/json.ts";
import { readDocument } from "../manifest/yaml/parse-stream.ts";
import {
  type DockerConfig,
  DockerConfigError,
  lookUpCredentials,
  parseDockerConfig,
  parseLegacyDockerConfig,
  type RegistryCredential,
  registryKey,
  registryMatches,
} from "./engine/docker-config.ts";

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

interface ImageCredentialsOptions {
  /** First place to look for `config.json` and `.dockercfg`. */
  rootDir: string;
  /** `$HOME`; "" = there is none. */
  homeDir: string;
  /** kubelet credential-provider plugins. */
  providers?: CredentialProviders | undefined;
  files: Pick<TextFiles, "readText">;
  logger: Logger;
}

/** Credentials of a pod's secrets, the machine's docker config, then the plugins. Files are read for each pull. */
export class ImageCredentials {
  readonly #options: ImageCredentialsOptions;

  constructor(options: ImageCredentialsOptions) {
    this.#options = options;
  }

  /** Every credential worth a try, best first; empty = none. @throws DockerConfigError a pull secret is malformed */
  async lookUp(
    reference: ImageReference,
    pullSecrets: readonly Secret[],
    signal: AbortSignal | undefined,
  ): Promise<RegistryAuth[]> {
    const repository = repositoryOf(reference);
    const ofPod = lookUpCredentials(readPullSecrets(pullSecrets), repository);
    const config = await this.#readConfig();
    const ofMachine: RegistryCredential[] = [...(config?.entries ?? [])];
    if (config) ofMachine.push(...(await this.#askHelpers(config, reference, signal)));
    if (this.#options.providers) ofMachine.push(...(await this.#options.providers.ask(reference, signal)));
    return dropDuplicates([...ofPod, ...lookUpCredentials(ofMachine, repository)]);
  }

  /** The first file that is there and readable; `config.json` anywhere before `.dockercfg` anywhere, as upstream. */
  async #readConfig(): Promise<DockerConfig | undefined> {
    const { rootDir, homeDir, logger, files } = this.#options;
    // A Map, because without a home the third is the second.
    const candidates = new Map([
      [`${rootDir}/config.json`, parseDockerConfig],
      [`${homeDir}/.docker/config.json`, parseDockerConfig],
      ["/.docker/config.json", parseDockerConfig],
      [`${rootDir}/.dockercfg`, parseLegacyDockerConfig],
      [`${homeDir}/.dockercfg`, parseLegacyDockerConfig],
      ["/.dockercfg", parseLegacyDockerConfig],
    ]);
    for (const [path, parse] of candidates) {
      const text = await files.readText(path, SYSTEM_FILE_BYTES).catch(() => undefined);
      if (text === undefined) continue;
      try {
        return parse(text);
      } catch (error) {
        logger.warn(`Registry credentials in ${path} are ignored: ${messageOf(error)}`);
      }
    }
    return undefined;
  }

  async #askHelpers(
    config: DockerConfig,
    reference: ImageReference,
    signal: AbortSignal | undefined,
  ): Promise<RegistryCredential[]> {
    // Docker Hub is known to helpers by its old URL.
    const server = reference.domain === "docker.io" ? "https://index.docker.io/v1/" : reference.domain;
    const special = Object.entries(config.credHelpers).find(([registry]) => {
      const key = registryKey(registry);
      return key === registryKey(server) || registryMatches(key, repositoryOf(reference));
    });
    const [registry, helper] = special ?? [server, config.credsStore];
    if (helper === "") return [];
    try {
      const auth = await askCredentialHelper(helper, registry, signal);
      return auth ? [{ registry, auth }] : [];
    } catch (error) {
      signal?.throwIfAborted();
      this.#options.logger.warn(messageOf(error), { registry });
      return [];
    }
  }
}

function dropDuplicates(auths: readonly RegistryAuth[]): RegistryAuth[] {
  const seen = new Map(auths.map((auth) => [JSON.stringify(auth), auth]));
  return [...seen.values()];
}

/** Types of Secrets with credentials. */
const PULL_SECRETS = new Map([
  ["kubernetes.io/dockerconfigjson", { key: ".dockerconfigjson", parse: parseDockerConfig }],
  ["kubernetes.io/dockercfg", { key: ".dockercfg", parse: parseLegacyDockerConfig }],
]);

/** Credentials out of imagePullSecrets, in their order. @throws DockerConfigError naming the Secret */
function readPullSecrets(secrets: readonly Secret[]): RegistryCredential[] {
  return secrets.flatMap((secret) => {
    const { key, parse } = PULL_SECRETS.get(secret.type ?? "") ?? {};
    const data = key && secret.data?.[key];
    if (data === undefined || parse === undefined) return [];
    try {
      return parse(Buffer.from(data, "base64").toString("utf8")).entries;
    } catch (cause) {
      const why = messageOf(cause);
      const name = `${secret.metadata.namespace ?? "default"}/${secret.metadata.name ?? ""}`;
      throw new DockerConfigError(`imagePullSecret "${name}", key ${key}: ${why}`, { cause });
    }
  });
}

/** Docker's protocol: this user name says that the secret is a token. */
const TOKEN_USER = "<token>";
const HELPER_TIMEOUT_MS = 30_000;

/**
 * Asks `docker-credential-<helper> get`.
 * @returns undefined when it knows none
 * @throws Error naming the helper, never its output
 */
async function askCredentialHelper(
  helper: string,
  registry: string,
  signal: AbortSignal | undefined,
): Promise<RegistryAuth | undefined> {
  if (!/^[A-Za-z0-9._-]+$/.test(helper)) throw new Error(`"${helper}" is not a name of a credential helper`);
  const program = `docker-credential-${helper}`;
  const outcome = await runProgram([program, "get"], {
    input: registry,
    timeoutMs: HELPER_TIMEOUT_MS,
    maxBytes: 1024 * 1024,
    signal,
  });
  if (outcome.exitCode !== 0) {
    // The protocol has no code for it, only this text, on stdout.
    if (/credentials not found/i.test(outcome.stdout)) return undefined;
    throw new Error(`${program} get ended with ${outcome.exitCode}`);
  }
  const login = parseResponse(outcome.stdout);
  if (!login) throw new Error(`${program} get answered something else than Username and Secret`);
  return login.user === TOKEN_USER ? { identitytoken: login.secret } : { username: login.user, password: login.secret };
}

function parseResponse(text: string): { user: string; secret: string } | undefined {
  const response = jsonIfValid(text);
  const { Username, Secret } = isRecord(response) ? response : {};
  return typeof Username === "string" && typeof Secret === "string" ? { user: Username, secret: Secret } : undefined;
}
