import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { readTextIfExists } from "../../base/files/bounded-read.ts";
import { type Kubeconfig, readKubeconfig } from "../client/kubeconfig.ts";
import { currentPath, readValidity } from "./certificate-files.ts";
import { isValidAt } from "./certificate-plan.ts";

const MAX_PEM_BYTES = 1024 * 1024;

interface BootstrapOptions {
  kubeconfig: string;
  bootstrapKubeconfig: string;
}

/**
 * Whether the bootstrap credentials are needed: the kubeconfig is missing, or its certificate has expired. One that uses
 * tokens or plugins counts as good.
 */
export function needsBootstrap({ kubeconfig, bootstrapKubeconfig }: BootstrapOptions, now: Date): boolean {
  if (bootstrapKubeconfig === "") return false;
  let config: Kubeconfig;
  try {
    config = readKubeconfig(kubeconfig);
  } catch {
    return true;
  }
  const { user } = config;
  const path = user["client-certificate"];
  const data = user["client-certificate-data"];
  if (!path && !data) return !(user.token || user.tokenFile || user.exec || user["auth-provider"] || user.username);
  const pem = data ? Buffer.from(data, "base64").toString("utf8") : readTextIfExists(path!, MAX_PEM_BYTES);
  const validity = readValidity(pem);
  return !validity || !isValidAt(validity, now.getTime());
}

/** Writes the kubeconfig that uses the certificate of `--cert-dir`, with server and CA of the bootstrap kubeconfig. @throws Error */
export function writeKubeconfig({ kubeconfig, bootstrapKubeconfig }: BootstrapOptions, certDir: string): void {
  const { cluster } = readKubeconfig(bootstrapKubeconfig);
  const pem = currentPath(certDir, "client");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "default-cluster", cluster }],
    users: [{ name: "default-auth", user: { "client-certificate": pem, "client-key": pem } }],
    contexts: [
      { name: "default-context", context: { cluster: "default-cluster", namespace: "default", user: "default-auth" } },
    ],
    "current-context": "default-context",
  };
  mkdirSync(dirname(kubeconfig), { recursive: true });
  // JSON is YAML.
  writeFileSync(`${kubeconfig}.new`, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${kubeconfig}.new`, kubeconfig);
}
