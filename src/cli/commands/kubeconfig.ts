import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { readBoundedText, readTextIfExists, replaceFile } from "../../base/files/whole-file.ts";
import { readDocument } from "../../manifest/yaml/parse-stream.ts";
import { findApiSocket } from "../client/api-client.ts";
import { CommandError, type CommandIo, type CommandRequest, replaceablePath } from "../sub-command.ts";

const MAX_BYTES = 4 * 1024 * 1024;

/** The part of a kubeconfig that is merged. */
interface Kubeconfig {
  clusters?: Named[] | null;
  users?: Named[] | null;
  contexts?: Named[] | null;
  "current-context"?: string;
  [field: string]: unknown;
}

interface Named {
  name: string;
}

/** `kubelet-ts kubeconfig [--merge]`: the administrator's kubeconfig of the node. */
export async function runKubeconfig(request: CommandRequest, io: CommandIo): Promise<number> {
  const path = join(dirname(await findApiSocket(request)), "admin.conf");
  const text = readOwn(path);
  if (!request.isOn("merge")) {
    io.stdout(text);
    return 0;
  }
  const target = (process.env.KUBECONFIG ?? "").split(":").find(Boolean) ?? join(homedir(), ".kube", "config");
  const before = readTextIfExists(target, MAX_BYTES);
  const read = (contents: string, file: string) => readDocument(Buffer.from(contents), file) as Kubeconfig | undefined;
  const merged = mergeKubeconfig(read(before ?? "", target) ?? {}, read(text, path) ?? {});
  const { writeYaml } = await import("../../base/text/write-yaml.ts");
  replaceFile(replaceablePath(target), writeYaml(merged), { durable: false, directoryMode: 0o700 });
  io.stdout(`context "${merged["current-context"]}" is in ${target}, and is the current one\n`);
  return 0;
}

function readOwn(path: string): string {
  try {
    return readBoundedText(path, MAX_BYTES);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CommandError(
      code === "ENOENT"
        ? `"${path}" does not exist: the kubelet serves no TLS port (--local-api-port=0); its socket needs no kubeconfig`
        : `"${path}" cannot be read: ${message}`,
    );
  }
}

/** Entries of the same name are replaced, everything else stays; the added context becomes the current one. */
export function mergeKubeconfig(before: Kubeconfig, added: Kubeconfig): Kubeconfig {
  const merge = (old: Named[] | null | undefined, more: Named[] | null | undefined): Named[] => {
    const names = new Set((more ?? []).map(({ name }) => name));
    return [...(old ?? []).filter(({ name }) => !names.has(name)), ...(more ?? [])];
  };
  return {
    apiVersion: "v1",
    kind: "Config",
    ...before,
    clusters: merge(before.clusters, added.clusters),
    users: merge(before.users, added.users),
    contexts: merge(before.contexts, added.contexts),
    ...(added["current-context"] !== undefined && { "current-context": added["current-context"] }),
  };
}
