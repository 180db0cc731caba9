import { expect, test } from "bun:test";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { findPodRefusal, type RefusalInput } from "../../src/docker/pod-refusal.ts";
import { aPod, ENGINE, type Json } from "./mapping-requests.ts";

const refuse = (pod: Parameters<typeof aPod>[0], over: Partial<RefusalInput> = {}) =>
  findPodRefusal({ pod: aPod(pod), engine: ENGINE, settings: DEFAULT_KUBELET_OPTIONS, ...over });

const sysctl = (name: string, spec: Json = {}) => ({
  spec: { ...spec, securityContext: { sysctls: [{ name, value: "1" }] } },
});
const settings = { allowPrivileged: false, allowedUnsafeSysctls: [] as string[], kubeconfig: "" };
const allowing = (...allowedUnsafeSysctls: string[]) => ({ settings: { ...settings, allowedUnsafeSysctls } });
const allowingAll = (kubeconfig = "") => ({ settings: { ...settings, allowPrivileged: true, kubeconfig } });
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
const runtime = (runtimeClassName: string) => ({ spec: { runtimeClassName } });
const network = (name: string, spec: Json = {}) => ({
  metadata: { annotations: { "kubelet-ts.io/network": name } },
  spec,
});
const address = (ip: string, more: Json = {}) => ({ metadata: { annotations: { "kubelet-ts.io/ip": ip, ...more } } });
const groups = (supplementalGroupsPolicy: string) => ({ spec: { securityContext: { supplementalGroupsPolicy } } });
const tcp = "net.ipv4.tcp_syncookies";
const forbidden = (what: string) => new RegExp(`^Pod forbidden sysctl: ${what}$`);
const noNetwork = /must be the name of a Docker network/;
const noAppArmor = /not enabled on the host/;

test.each<[string, reason: string, message: RegExp, pod: Parameters<typeof aPod>[0], over?: Partial<RefusalInput>]>([
  ["an unsafe sysctl", "SysctlForbidden", forbidden('"kernel.msgmax" not whitelisted'), sysctl("kernel.msgmax")],
  ["a sysctl of the machine", "SysctlForbidden", /not whitelisted/, sysctl("vm.swappiness"), allowing("vm.*")],
  ["another pattern", "SysctlForbidden", /not whitelisted/, sysctl("kernel.msgmax"), allowing("kernel.shm*")],
  [
    "a network sysctl in the host's network",
    "SysctlForbidden",
    forbidden(`"${tcp}" not allowed with host net enabled`),
    sysctl(tcp, { hostNetwork: true }),
  ],
  [
    "an IPC sysctl in the host's IPC",
    "SysctlForbidden",
    /not allowed with host ipc enabled/,
    sysctl("kernel.shm_rmid_forced", { hostIPC: true }),
  ],
  ["supplementalGroupsPolicy Strict", "Unsupported", /set runAsGroup/, groups("Strict")],
  ["hostUsers: false without remapping", "Unsupported", /--userns-remap/, { spec: { hostUsers: false } }],
  ["Windows", "Unsupported", /runs Linux/, { spec: { os: { name: "windows" } } }],
  ["a runtime the engine does not have", "Unsupported", /only runc/, runtime("runsc")],
  [
    "a runtime the engine does not have, without containerd's names for those it has",
    "Unsupported",
    /only runc, runsc$/,
    runtime("gvisor"),
    { engine: { ...ENGINE, runtimes: RUNTIMES } },
  ],
  [
    "a fixed address in the engine's own network",
    "Unsupported",
    /^metadata\.annotations\["kubelet-ts\.io\/ip"\]: 10\.1\.2\.3: Docker assigns fixed addresses only in user-defined networks/,
    address("10.1.2.3"),
  ],
  [
    "an address that is none",
    "Unsupported",
    /must be an IPv4 or IPv6 address/,
    address("10.1.2", { "kubelet-ts.io/network": "lan" }),
  ],
  ["a network for the host's", "Unsupported", /remove one of the two/, network("lan", { hostNetwork: true })],
  ["the network of the host by annotation", "Unsupported", /host: set spec\.hostNetwork/, network("host")],
  ["a built-in network and others", "Unsupported", /bridge cannot be one of several networks/, network("lan,bridge")],
  ["the network of another container", "Unsupported", noNetwork, network("container:0123456789ab")],
  ["a network namespace by path", "Unsupported", noNetwork, network("ns:/proc/1/ns/net")],
  ["privileged", "PrivilegedNotAllowed", /container "c".*--allow-privileged=true/, privileged],
  ["AppArmor RuntimeDefault on a kernel without it", "AppArmor", noAppArmor, appArmor("RuntimeDefault")],
  ["AppArmor by annotation on a kernel without it", "AppArmor", noAppArmor, appArmorAnnotation],
  ["recursiveReadOnly on an old engine", "Unsupported", /API 1\.44 or newer, this one has 1\.41/, recursive],
])("%s is refused", (_, reason, message, pod, ...[over]) => {
  expect<object | undefined>(refuse(pod, over)).toEqual({ reason, message: expect.stringMatching(message) });
});

test.each<[string, Parameters<typeof refuse>]>([
  ["a plain pod", [{}]],
  ["a safe sysctl", [sysctl("net.ipv4.ip_local_port_range")]],
  ["a safe sysctl with slashes", [sysctl("net/ipv4/tcp_syncookies")]],
  ["an unsafe sysctl allowed by name", [sysctl("kernel.msgmax"), allowing("kernel.msgmax")]],
  ["an unsafe sysctl allowed by prefix", [sysctl("net.core.somaxconn"), allowing("net.core.*")]],
  ["a sysctl of a namespace the pod does not share", [sysctl("net.ipv4.tcp_syncookies", { hostIPC: true })]],
  ["supplementalGroupsPolicy Merge", [groups("Merge")]],
  ["Strict with a group", [{ spec: { securityContext: { supplementalGroupsPolicy: "Strict", runAsGroup: 1 } } }]],
  ["hostUsers: true", [{ spec: { hostUsers: true } }]],
  ["hostUsers: false on a remapping engine", [{ spec: { hostUsers: false } }, engineWith("name=userns")]],
  ["a runtime that a cluster's pod waits for", [runtime("runsc"), allowingAll("/etc/kubernetes/kubelet.conf")]],
  ["a runtime the engine has", [runtime("runc")]],
  ["privileged with --allow-privileged", [privileged, allowingAll()]],
  ["AppArmor where the kernel has it", [appArmor("RuntimeDefault"), engineWith("name=apparmor")]],
  ["AppArmor Unconfined anywhere", [appArmor("Unconfined")]],
  ["recursiveReadOnly on a new engine", [recursive, { engine: { ...ENGINE, apiVersion: "1.44" } }]],
])("%s may run", (_, input) => {
  expect(refuse(...input)).toBeUndefined();
});
