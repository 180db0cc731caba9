import { expect, test } from "bun:test";
import type { InstanceInfo } from "../../src/base/host/root-directory.ts";
import { describeBusyRoot } from "../../src/cli/kubelet-command.ts";

const holder = { pid: 7, nodeName: "n", rootDir: "/r", mode: "supervise", manifestPaths: ["/etc/pods"] };
const pidAndNode = (more: Partial<InstanceInfo> = {}) => ({ ...holder, ...more }) as InstanceInfo;
const here = 'A kubelet-ts already runs on the root directory "/r" (pid 7, node "n")';
const another = "set another root directory with --root-dir and node name with --hostname-override";

test.each<[string, InstanceInfo | "unreadable" | undefined, string[], string]>([
  [
    "a manifest",
    pidAndNode(),
    ["web.yaml"],
    `${here}: give it the manifest with "kubelet-ts apply --root-dir=/r -f web.yaml", or copy it into its manifest directory "/etc/pods"`,
  ],
  [
    "two, without a manifest directory",
    pidAndNode({ manifestPaths: [] }),
    ["a.yaml", "my pods/"],
    `${here}: give it the manifests with "kubelet-ts apply --root-dir=/r -f a.yaml -f 'my pods/'"`,
  ],
  ["none", pidAndNode(), [], `${here}; for a second kubelet ${another}`],
  [
    "a run that ends soon",
    pidAndNode({ mode: "run-once" }),
    ["web.yaml"],
    'A kubelet-ts that ends soon uses the root directory "/r" (pid 7): try again then',
  ],
  ["an unknown process", undefined, ["web.yaml"], `Another kubelet-ts uses the root directory "/r"; ${another}`],
])("a root directory in use: %s", (_, found, manifests, expected) => {
  expect(describeBusyRoot("/r", found, manifests, () => true)).toBe(expected);
});
