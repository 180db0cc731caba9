import type { Secret } from "../api/secret.ts";
import {
  DockerConfigError,
  parseDockerConfig,
  parseLegacyDockerConfig,
  type RegistryCredential,
} from "../docker/docker-config.ts";

/**
 * Credentials out of a pod's imagePullSecrets, in their order. Other types of Secrets hold none.
 * @throws DockerConfigError naming the Secret
 */
export function readPullSecrets(secrets: readonly Secret[]): RegistryCredential[] {
  return secrets.flatMap((secret) => {
    const [key, parse] =
      secret.type === "kubernetes.io/dockerconfigjson"
        ? ([".dockerconfigjson", parseDockerConfig] as const)
        : secret.type === "kubernetes.io/dockercfg"
          ? ([".dockercfg", parseLegacyDockerConfig] as const)
          : [undefined, undefined];
    const data = key === undefined ? undefined : secret.data?.[key];
    if (data === undefined || parse === undefined) return [];
    try {
      return parse(Buffer.from(data, "base64").toString("utf8")).entries;
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      const name = `${secret.metadata.namespace ?? "default"}/${secret.metadata.name ?? ""}`;
      throw new DockerConfigError(`imagePullSecret "${name}", key ${key}: ${why}`, { cause });
    }
  });
}
