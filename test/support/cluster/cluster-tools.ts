import { describe, setDefaultTimeout } from "bun:test";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { SLOWNESS } from "../until.ts";

const firstThatExists = (...paths: (string | undefined)[]) => paths.find((path) => path && existsSync(path)) ?? "";

/** Folder with kube-apiserver, kube-controller-manager, kube-scheduler and kubectl; "" when there is none. */
export const KUBERNETES = firstThatExists(
  process.env.KUBELET_TS_KUBERNETES,
  join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "kubelet-ts", "kubernetes-1.20.2-1"),
);

/** The program etcd; "" when there is none. */
export const ETCD = firstThatExists(process.env.KUBELET_TS_ETCD, "/usr/bin/etcd");

/** Folder with Debian's CNI plugins; "" when there is none. */
export const CNI_PLUGINS = firstThatExists(process.env.KUBELET_TS_CNI, "/usr/lib/cni");

const TEST_LIMIT_MS = 300_000 * SLOWNESS;

/** The programs are provided by `npm run test:cluster`. */
export const hasCluster = Boolean(process.env.KUBELET_TS_KUBERNETES && KUBERNETES && ETCD);

/** `describe` for tests of a real cluster. They run only in `npm run test:cluster`. */
export function describeCluster(title: string, body: () => void): void {
  setDefaultTimeout(TEST_LIMIT_MS);
  if (!hasCluster) console.warn(`SKIPPED "${title}": run it with npm run test:cluster`);
  describe.skipIf(!hasCluster)(title, body);
}
