import {
  type CredentialProvider,
  type CredentialProviderResponse,
  parseCredentialProviderConfig,
  parseCredentialProviderResponse,
} from "../base/api/credential-provider.ts";
import { readBoundedText, SYSTEM_FILE_BYTES } from "../base/files/bounded-read.ts";
import { runProgram } from "../base/host/run-program.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import { type ImageReference, repositoryOf } from "../base/text/image-reference.ts";
import { readDocument } from "../manifest/yaml/read-document.ts";
import type { RegistryCredential } from "./engine/docker-config.ts";
import { registryMatches } from "./image-keyring.ts";

const PLUGIN_TIMEOUT_MS = 60_000;
const PLUGIN_MAX_BYTES = 1024 * 1024;

interface Cached {
  entries: RegistryCredential[];
  expiresAtMs: number;
}

/**
 * The kubelet's credential-provider plugins: programs that are asked for credentials when an image matches.
 * Responses are kept as long as they say. Source: k8s.io/kubernetes/pkg/credentialprovider/plugin.
 */
export class CredentialProviders {
  readonly #providers: readonly CredentialProvider[];
  readonly #binDir: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** Cached responses by provider, kind of key and key. */
  readonly #cache = new Map<string, Cached>();

  constructor(providers: readonly CredentialProvider[], binDir: string, clock: Clock, logger: Logger) {
    this.#providers = providers;
    this.#binDir = binDir;
    this.#clock = clock;
    this.#logger = logger;
  }

  /**
   * Reads `--image-credential-provider-config`, a YAML or JSON file.
   * @throws Error naming the file and the field
   */
  static fromFile(path: string, binDir: string, clock: Clock, logger: Logger): CredentialProviders {
    let config: unknown;
    try {
      config = readDocument(Buffer.from(readBoundedText(path, SYSTEM_FILE_BYTES)), path);
    } catch (cause) {
      throw new Error(`Credential provider configuration ${path} cannot be read: ${messageOf(cause)}`, { cause });
    }
    const parsed = parseCredentialProviderConfig(config);
    if (!parsed.ok) throw new Error(`Credential provider configuration ${path}: ${parsed.problems.join("; ")}`);
    return new CredentialProviders(parsed.providers, binDir, clock, logger);
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
        const why = messageOf(error);
        this.#logger.warn(`Credential provider "${provider.name}" failed: ${why}`, { image });
      }
    }
    return found;
  }

  async #askOne(
    provider: CredentialProvider,
    reference: ImageReference,
    signal: AbortSignal | undefined,
  ): Promise<RegistryCredential[]> {
    const image = fullName(reference);
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

  async #run(
    provider: CredentialProvider,
    image: string,
    signal: AbortSignal | undefined,
  ): Promise<CredentialProviderResponse> {
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
    let json: unknown;
    try {
      json = JSON.parse(outcome.stdout);
    } catch {
      throw new Error("its answer is not JSON");
    }
    const response = parseCredentialProviderResponse(json);
    if (typeof response === "string") throw new Error(`its answer is no CredentialProviderResponse: ${response}`);
    if (response.apiVersion !== provider.apiVersion) {
      throw new Error(`it answered in ${response.apiVersion.slice(0, 100)}, not in ${provider.apiVersion}`);
    }
    return response;
  }
}

function fullName(reference: ImageReference): string {
  const tag = reference.tag === undefined ? "" : `:${reference.tag}`;
  return `${repositoryOf(reference)}${tag}${reference.digest === undefined ? "" : `@${reference.digest}`}`;
}
