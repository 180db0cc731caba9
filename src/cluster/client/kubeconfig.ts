import { dirname, isAbsolute, join } from "node:path";
import * as v from "valibot";
import { readBoundedText } from "../../base/files/whole-file.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { readDocument } from "../../manifest/yaml/parse-stream.ts";

/** Far above any kubeconfig with embedded certificates. */
const MAX_KUBECONFIG_BYTES = 4 * 1024 * 1024;

const ClusterSchema = v.object({
  server: v.string(),
  "certificate-authority": v.optional(v.string()),
  "certificate-authority-data": v.optional(v.string()),
  "insecure-skip-tls-verify": v.optional(v.boolean()),
  "tls-server-name": v.optional(v.string()),
  "proxy-url": v.optional(v.string()),
});
type KubeconfigCluster = v.InferOutput<typeof ClusterSchema>;

const UserSchema = v.object({
  "client-certificate": v.optional(v.string()),
  "client-certificate-data": v.optional(v.string()),
  "client-key": v.optional(v.string()),
  "client-key-data": v.optional(v.string()),
  token: v.optional(v.string()),
  tokenFile: v.optional(v.string()),
  username: v.optional(v.string()),
  password: v.optional(v.string()),
  /** Handled by the client library. */
  exec: v.optional(v.looseObject({ command: v.string() })),
  /** Handled by the client library. */
  "auth-provider": v.optional(v.looseObject({ name: v.string() })),
});
export type KubeconfigUser = v.InferOutput<typeof UserSchema>;

const KubeconfigSchema = v.object({
  clusters: v.optional(v.array(v.object({ name: v.string(), cluster: ClusterSchema })), []),
  users: v.optional(v.array(v.object({ name: v.string(), user: v.nullish(UserSchema) })), []),
  contexts: v.optional(
    v.array(
      v.object({ name: v.string(), context: v.object({ cluster: v.string(), user: v.optional(v.string(), "") }) }),
    ),
    [],
  ),
  "current-context": v.optional(v.string(), ""),
});

/** The server and the credentials that the current context of a kubeconfig names. Paths are absolute. */
export interface Kubeconfig {
  path: string;
  cluster: KubeconfigCluster;
  user: KubeconfigUser;
}

/** Reads the current context of a kubeconfig. @throws Error that names the file and what is missing */
export function readKubeconfig(path: string): Kubeconfig {
  let data: unknown;
  try {
    data = readDocument(Buffer.from(readBoundedText(path, MAX_KUBECONFIG_BYTES)), path);
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
    throw new Error(
      isMissing ? `there is no file "${path}"` : `the kubeconfig "${path}" cannot be read: ${messageOf(error)}`,
    );
  }
  return parseKubeconfig(data, path);
}

/** @throws Error that names the file and what is missing */
export function parseKubeconfig(data: unknown, path: string): Kubeconfig {
  const parsed = v.safeParse(KubeconfigSchema, data);
  if (!parsed.success) {
    const [issue] = parsed.issues;
    // The issue's message contains the value, which may be a secret.
    const field = v.getDotPath(issue) ?? "the document";
    throw new Error(`Kubeconfig "${path}": ${field} must be ${issue.expected ?? "something else"}`);
  }
  const { clusters, users, contexts, "current-context": current } = parsed.output;
  // A file with one context needs no current-context here; kubectl would use an empty context.
  const context = contexts.find(({ name }) => name === current) ?? (current === "" ? contexts[0] : undefined);
  if (!context) throw new Error(`Kubeconfig "${path}": there is no context "${current}" (current-context)`);
  const cluster = clusters.find(({ name }) => name === context.context.cluster)?.cluster;
  if (!cluster) throw new Error(`Kubeconfig "${path}": there is no cluster "${context.context.cluster}"`);
  if (!URL.canParse(cluster.server)) throw new Error(`Kubeconfig "${path}": server "${cluster.server}" is no URL`);
  const user = users.find(({ name }) => name === context.context.user)?.user ?? {};
  const base = dirname(path);
  return { path, cluster: withAbsolutePaths(cluster, base), user: withAbsolutePaths(user, base) };
}

const PATH_FIELDS = new Set(["certificate-authority", "client-certificate", "client-key", "tokenFile"]);

/** Paths in a kubeconfig are relative to its directory. */
function withAbsolutePaths<T extends object>(fields: T, base: string): T {
  const entries = Object.entries(fields).map(([name, value]) =>
    PATH_FIELDS.has(name) && typeof value === "string" && value !== "" && !isAbsolute(value)
      ? [name, join(base, value)]
      : [name, value],
  );
  return Object.fromEntries(entries) as T;
}
