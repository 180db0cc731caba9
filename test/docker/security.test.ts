import { describe, expect, test } from "bun:test";
import { MappingError } from "../../src/docker/mapping-error.ts";
import {
  computeProcPaths,
  computeSecurityOpt,
  computeUser,
  isApiAtLeast,
  type SecurityOptInput,
} from "../../src/docker/security.ts";
import { aPod, ENGINE, type Json } from "./mapping-requests.ts";

const userOf = (imageUser: string, container: Json = {}, pod: Json = {}) => {
  const built = aPod({ spec: { securityContext: pod }, container: { securityContext: container } });
  return computeUser(built, built.spec.containers[0]!, imageUser);
};

describe("User", () => {
  test.each<[string, string, Json, Json, string]>([
    ["the image's name without its group", "app:staff", {}, {}, "app"],
    ["the container's before the pod's", "app", { runAsUser: 3 }, { runAsUser: 1, runAsGroup: 2 }, "3:2"],
    ["root on purpose", "app", { runAsUser: 0 }, {}, "0"],
    ["a group with the image's name", "app", { runAsGroup: 77 }, {}, "app:77"],
    ["runAsNonRoot with the image's number", "1000", { runAsNonRoot: true }, {}, "1000"],
    ["runAsNonRoot with a number of its own", "", { runAsNonRoot: true, runAsUser: 5 }, {}, "5"],
    ["runAsNonRoot with a number for a named image", "app", { runAsUser: 5 }, { runAsNonRoot: true }, "5"],
    ["the container may lift the pod's runAsNonRoot", "", { runAsNonRoot: false }, { runAsNonRoot: true }, "0"],
  ])("%s", (_, imageUser, container, pod, want) => {
    expect(userOf(imageUser, container, pod)).toBe(want);
  });

  const WHERE = '(pod: "web-node1_default(u1)", container: c)';

  test.each<[string, Json, string]>([
    ["", { runAsNonRoot: true }, `container has runAsNonRoot and image will run as root ${WHERE}`],
    ["0:5", { runAsNonRoot: true }, `container has runAsNonRoot and image will run as root ${WHERE}`],
    [
      "app",
      { runAsNonRoot: true },
      `container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root ${WHERE}`,
    ],
    ["5", { runAsNonRoot: true, runAsUser: 0 }, `container's runAsUser breaks non-root policy ${WHERE}`],
  ])("image user %j with %j is refused with upstream's words", (imageUser, container, message) => {
    expect(() => userOf(imageUser, container)).toThrow(new MappingError("CreateContainerConfigError", message));
  });
});

const PROFILE = '{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"value":18446744073709551615}]}';

const optionsOf = (
  pod: Parameters<typeof aPod>[0],
  over: Partial<SecurityOptInput> = {},
  files: Record<string, string> = {},
) => {
  const built = aPod(pod);
  return computeSecurityOpt({
    pod: built,
    container: built.spec.containers[0]!,
    engine: ENGINE,
    seccompRoot: "/root-dir/seccomp",
    seccompDefault: true,
    readFile: (path) => {
      const text = files[path];
      if (text === undefined) throw Object.assign(new Error("gone"), { code: "ENOENT" });
      return text;
    },
    ...over,
  });
};

const own = (securityContext: Json) => ({ container: { securityContext } });
const seccomp = (type: string, localhostProfile?: string) => ({
  seccompProfile: { type, ...(localhostProfile && { localhostProfile }) },
});

const PREFIX = "seccomp.security.alpha.kubernetes.io/pod";
const annotated = (annotations: Record<string, string>) => ({ metadata: { annotations } });

describe("SecurityOpt", () => {
  const localhost = { "/root-dir/seccomp/a/deny.json": `${PROFILE}\n` };

  test.each<[string, Parameters<typeof optionsOf>, string[]]>([
    ["without a profile: the default of the engine", [{}], []],
    ["RuntimeDefault", [own(seccomp("RuntimeDefault")), { seccompDefault: false }], []],
    ["Localhost, byte for byte", [own(seccomp("Localhost", "a/deny.json")), {}, localhost], [`seccomp=${PROFILE}`]],
    [
      "the container's before the pod's",
      [{ spec: { securityContext: seccomp("RuntimeDefault") }, ...own(seccomp("Unconfined")) }],
      ["seccomp=unconfined"],
    ],
    [
      "annotation of the container before that of the pod",
      [annotated({ [PREFIX]: "runtime/default", "container.seccomp.security.alpha.kubernetes.io/c": "unconfined" })],
      ["seccomp=unconfined"],
    ],
    [
      "annotation localhost/",
      [annotated({ [PREFIX]: "localhost/a/deny.json" }), {}, localhost],
      [`seccomp=${PROFILE}`],
    ],
    ["AppArmor RuntimeDefault is the engine's default", [own({ appArmorProfile: { type: "RuntimeDefault" } })], []],
    [
      "AppArmor Localhost",
      [own({ appArmorProfile: { type: "Localhost", localhostProfile: "k8s-nginx" } })],
      ["apparmor=k8s-nginx"],
    ],
    [
      "all in dockershim's order",
      [
        own({
          seLinuxOptions: { user: "u" },
          appArmorProfile: { type: "Unconfined" },
          allowPrivilegeEscalation: false,
          ...seccomp("Unconfined"),
        }),
      ],
      ["label=user:u", "apparmor=unconfined", "no-new-privileges", "seccomp=unconfined"],
    ],
  ])("%s", (_, input, want) => {
    expect(optionsOf(...input)).toEqual(want);
  });

  const INTRO =
    'failed to generate security options for container "c": failed to generate seccomp security options for container: ';

  test.each<[string, Parameters<typeof optionsOf>, string]>([
    [
      "a profile that is not there, with upstream's words",
      [own(seccomp("Localhost", "nothere.json"))],
      `${INTRO}cannot load seccomp profile "/root-dir/seccomp/nothere.json": open /root-dir/seccomp/nothere.json: no such file or directory`,
    ],
    [
      "a profile outside the directory",
      [own(seccomp("Localhost", "a/../../etc/x"))],
      `${INTRO}seccomp profile "a/../../etc/x" is not inside /root-dir/seccomp`,
    ],
    [
      "a profile that is not JSON",
      [own(seccomp("Localhost", "x")), {}, { "/root-dir/seccomp/x": "{" }],
      `${INTRO}cannot load seccomp profile "/root-dir/seccomp/x": not JSON`,
    ],
    [
      "RuntimeDefault on an engine without seccomp",
      [own(seccomp("RuntimeDefault")), { engine: { ...ENGINE, securityOptions: [] } }],
      "securityContext.seccompProfile: the engine has no seccomp: cannot apply RuntimeDefault",
    ],
  ])("%s is refused", (_, input, message) => {
    expect(() => optionsOf(...input)).toThrow(message);
  });
});

describe("MaskedPaths", () => {
  test("the kubelet's list", () => {
    const { MaskedPaths, ReadonlyPaths } = computeProcPaths({}, ENGINE);
    expect(MaskedPaths).toHaveLength(9);
    expect(ReadonlyPaths).toContain("/proc/sys");
  });

  test("on a newer engine its default masked paths stay hidden", () => {
    const { MaskedPaths } = computeProcPaths({ procMount: "Default" }, { ...ENGINE, apiVersion: "1.52" });
    expect(MaskedPaths).toEqual(expect.arrayContaining(["/proc/interrupts", "/sys/devices/virtual/powercap"]));
  });

  test("Unmasked hides nothing; privileged leaves it to the engine", () => {
    expect(computeProcPaths({ procMount: "Unmasked" }, ENGINE)).toEqual({ MaskedPaths: [], ReadonlyPaths: [] });
    expect(computeProcPaths({ privileged: true }, ENGINE)).toEqual({});
  });
});

test.each([
  ["1.41", "1.41", true],
  ["1.41", "1.44", false],
  ["1.9", "1.41", false],
  ["2.0", "1.41", true],
] as const)("API %s is at least %s: %j", (have, want, answer) => {
  expect(isApiAtLeast({ ...ENGINE, apiVersion: have }, want)).toBe(answer);
});
