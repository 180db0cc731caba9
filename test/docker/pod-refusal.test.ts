import { expect, test } from "bun:test";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { findPodRefusal, type RefusalInput } from "../../src/docker/pod-refusal.ts";
import { aPod, ENGINE, type Json } from "./mapping-requests.ts";

const refuse = (pod: Parameters<typeof aPod>[0], over: Partial<RefusalInput> = {}) =>
  findPodRefusal({ pod: aPod(pod), engine: ENGINE, settings: DEFAULT_KUBELET_OPTIONS, ...over });

const sysctl = (name: string, spec: Json = {}) => ({
  spec: { ...spec, securityContext: { sysctls: [{ name, value: "1" }] } },
});
const allowing = (...allowedUnsafeSysctls: string[]) => ({
  settings: { allowPrivileged: false, allowedUnsafeSysctls, kubeconfig: "" },
});
const engineWith = (...securityOptions: string[]) => ({ engine: { ...ENGINE, securityOptions } });
const privileged = { container: { securityContext: { privileged: true } } };
const appArmor = (type: string) => ({ container: { securityContext: { appArmorProfile: { type } } } });
const appArmorAnnotation = {
  metadata: { annotations: { "container.apparmor.security.beta.kubernetes.io/c": "runtime/default" } },
};
const recursive = {
  spec: { volumes: [{ name: "v" }] },
  container: { volumeMounts: [{ name: "v", mountPath: "/v", readOnly: true, recursiveReadOnly: "Enabled" }] },
};

const RUNTIMES = ["io.containerd.runc.v2", "io.containerd.runtime.v1.linux", "runsc", "runc"];

test.each<[string, Parameters<typeof refuse>, string, RegExp]>([
  [
    "an unsafe sysctl",
    [sysctl("kernel.msgmax")],
    "SysctlForbidden",
    /^Pod forbidden sysctl: "kernel.msgmax" not whitelisted$/,
  ],
  [
    "a sysctl of the whole machine, whatever is allowed",
    [sysctl("vm.swappiness"), allowing("vm.*")],
    "SysctlForbidden",
    /not whitelisted/,
  ],
  [
    "a pattern that does not match",
    [sysctl("kernel.msgmax"), allowing("kernel.shm*")],
    "SysctlForbidden",
    /not whitelisted/,
  ],
  [
    "a network sysctl in the host's network",
    [sysctl("net.ipv4.tcp_syncookies", { hostNetwork: true })],
    "SysctlForbidden",
    /^Pod forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host net enabled$/,
  ],
  [
    "an IPC sysctl in the host's IPC",
    [sysctl("kernel.shm_rmid_forced", { hostIPC: true })],
    "SysctlForbidden",
    /not allowed with host ipc enabled/,
  ],
  [
    "supplementalGroupsPolicy Strict",
    [{ spec: { securityContext: { supplementalGroupsPolicy: "Strict" } } }],
    "Unsupported",
    /only Merge/,
  ],
  ["hostUsers: false without remapping", [{ spec: { hostUsers: false } }], "Unsupported", /--userns-remap/],
  ["Windows", [{ spec: { os: { name: "windows" } } }], "Unsupported", /runs Linux/],
  ["a runtime the engine does not have", [{ spec: { runtimeClassName: "runsc" } }], "Unsupported", /only runc/],
  [
    "a runtime the engine does not have, without containerd's names for those it has",
    [{ spec: { runtimeClassName: "gvisor" } }, { engine: { ...ENGINE, runtimes: RUNTIMES } }],
    "Unsupported",
    /only runc, runsc$/,
  ],
  [
    "a fixed address in the engine's own network",
    [{ metadata: { annotations: { "kubelet-ts.io/ip": "10.1.2.3" } } }],
    "Unsupported",
    /^metadata\.annotations\["kubelet-ts\.io\/ip"\]: 10\.1\.2\.3: Docker assigns fixed addresses only in user-defined networks/,
  ],
  [
    "an address that is none",
    [{ metadata: { annotations: { "kubelet-ts.io/ip": "10.1.2", "kubelet-ts.io/network": "lan" } } }],
    "Unsupported",
    /must be an IPv4 or IPv6 address/,
  ],
  [
    "a network for a pod in the host's",
    [{ metadata: { annotations: { "kubelet-ts.io/network": "lan" } }, spec: { hostNetwork: true } }],
    "Unsupported",
    /remove one of the two/,
  ],
  [
    "the network of the host by annotation",
    [{ metadata: { annotations: { "kubelet-ts.io/network": "host" } } }],
    "Unsupported",
    /host: set spec\.hostNetwork/,
  ],
  [
    "the network of another container",
    [{ metadata: { annotations: { "kubelet-ts.io/network": "container:0123456789ab" } } }],
    "Unsupported",
    /must be the name of a Docker network/,
  ],
  [
    "a network namespace by path",
    [{ metadata: { annotations: { "kubelet-ts.io/network": "ns:/proc/1/ns/net" } } }],
    "Unsupported",
    /must be the name of a Docker network/,
  ],
  [
    "privileged without --allow-privileged",
    [privileged],
    "PrivilegedNotAllowed",
    /container "c".*--allow-privileged=true/,
  ],
  [
    "AppArmor RuntimeDefault on a kernel without it",
    [appArmor("RuntimeDefault")],
    "AppArmor",
    /not enabled on the host/,
  ],
  ["AppArmor by annotation on a kernel without it", [appArmorAnnotation], "AppArmor", /not enabled on the host/],
  ["recursiveReadOnly on an old engine", [recursive], "Unsupported", /API 1\.44 or newer, this one has 1\.41/],
])("%s is refused", (_, input, reason, message) => {
  expect<object | undefined>(refuse(...input)).toEqual({ reason, message: expect.stringMatching(message) });
});

test.each<[string, Parameters<typeof refuse>]>([
  ["a plain pod", [{}]],
  ["a safe sysctl", [sysctl("net.ipv4.ip_local_port_range")]],
  ["a safe sysctl with slashes", [sysctl("net/ipv4/tcp_syncookies")]],
  ["an unsafe sysctl allowed by name", [sysctl("kernel.msgmax"), allowing("kernel.msgmax")]],
  ["an unsafe sysctl allowed by prefix", [sysctl("net.core.somaxconn"), allowing("net.core.*")]],
  ["a sysctl of a namespace the pod does not share", [sysctl("net.ipv4.tcp_syncookies", { hostIPC: true })]],
  ["supplementalGroupsPolicy Merge", [{ spec: { securityContext: { supplementalGroupsPolicy: "Merge" } } }]],
  ["hostUsers: true", [{ spec: { hostUsers: true } }]],
  ["hostUsers: false on a remapping engine", [{ spec: { hostUsers: false } }, engineWith("name=userns")]],
  [
    "a runtime the engine does not have, in a cluster: its sandbox is tried again,",
    [
      { spec: { runtimeClassName: "runsc" } },
      { settings: { allowPrivileged: true, allowedUnsafeSysctls: [], kubeconfig: "/etc/kubernetes/kubelet.conf" } },
    ],
  ],
  ["a runtime the engine has", [{ spec: { runtimeClassName: "runc" } }]],
  [
    "privileged with --allow-privileged",
    [privileged, { settings: { allowPrivileged: true, allowedUnsafeSysctls: [], kubeconfig: "" } }],
  ],
  ["AppArmor where the kernel has it", [appArmor("RuntimeDefault"), engineWith("name=apparmor")]],
  ["AppArmor Unconfined anywhere", [appArmor("Unconfined")]],
  ["recursiveReadOnly on a new engine", [recursive, { engine: { ...ENGINE, apiVersion: "1.44" } }]],
])("%s may run", (_, input) => {
  expect(refuse(...input)).toBeUndefined();
});
