import type { Secret } from "../base/api/config-objects.ts";
import type { TextFiles } from "../base/files/whole-file.ts";
import { SYSTEM_FILE_BYTES } from "../base/files/whole-file.ts";
import { runProgram } from "../base/host/run-program.ts";
import type { Logger } from "../base/model/logger.ts";
import type { RegistryAuth } from "../base/model/registry-auth.ts";
import { messageOf } from "../base/text/error-message.ts";
import { type ImageReference, repositoryOf } from "../base/text/image-reference.ts";
import { isRecord, jsonIfValid } from "../base/text/json.ts";
import type { CredentialProviders } from "./credential-provider.ts";
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
