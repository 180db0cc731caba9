import { expect, test } from "bun:test";
import { toContainerCreateBody } from "../../src/docker/create-bodies.ts";
import { aContainerRequest, aPod, OWNER } from "./mapping-requests.ts";

const volume = (type: string) => ({ name: "v", hostPath: { path: "/dev/ttyUSB0", type } });
const mount = { type: "bind", source: "/dev/ttyUSB0", target: "/dev/modem", readOnly: false } as const;

function hostConfigOf(type: string, container: object = {}, readOnly = false) {
  const pod = aPod({
    spec: { volumes: [volume(type)] },
    container: { volumeMounts: [{ name: "v", mountPath: "/dev/modem", readOnly }], ...container },
  });
  return toContainerCreateBody(aContainerRequest(pod, { mounts: [mount] }), OWNER).HostConfig;
}

test.each(["CharDevice", "BlockDevice"])("a hostPath of type %s is a device with its cgroup rule", (type) => {
  const { Devices, Binds } = hostConfigOf(type);
  expect(Devices).toEqual([{ PathOnHost: "/dev/ttyUSB0", PathInContainer: "/dev/modem", CgroupPermissions: "rwm" }]);
  expect(Binds).toBeUndefined();
});

test("a read-only mount may only read", () => {
  expect(hostConfigOf("CharDevice", {}, true).Devices).toMatchObject([{ CgroupPermissions: "r" }]);
});

test.each([
  ["another type", "", {}],
  ["a privileged container", "CharDevice", { securityContext: { privileged: true } }],
])("%s keeps the mount", (_, type, container) => {
  const { Devices, Binds } = hostConfigOf(type, container);
  expect({ Devices, Binds }).toEqual({ Devices: [], Binds: ["/dev/ttyUSB0:/dev/modem"] });
});
