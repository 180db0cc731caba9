import { expect, test } from "bun:test";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { instanceInfo, toPageUrl } from "../../src/daemon/instance-info.ts";

test.each([
  ["127.0.0.1", "10.0.0.5", "http://127.0.0.1:4194"],
  ["::1", "10.0.0.5", "http://[::1]:4194"],
  ["0.0.0.0", "10.0.0.5", "https://10.0.0.5:4194"],
  ["::", "fd00::5", "https://[fd00::5]:4194"],
  ["192.168.1.2", "10.0.0.5", "https://192.168.1.2:4194"],
])("the page that is served on %s of the node %s is at %s", (address, nodeIp, url) => {
  expect(toPageUrl(address, nodeIp, 4194)).toBe(url);
});

test("a kubelet is starting until its socket is open, where it will have one", () => {
  const options = { ...DEFAULT_KUBELET_OPTIONS, rootDir: "/r" };
  const ports = () => ({ healthz: undefined, readOnly: undefined, cadvisor: undefined, authenticated: undefined });
  const isStarting = (more: object, socketPath?: string) =>
    instanceInfo({ ...options, ...more }, {}, { ports, socketPath: () => socketPath }).isStarting;
  expect([isStarting({}), isStarting({}, "/r/kubelet-ts.sock"), isStarting({ enableServer: false })]).toEqual([
    true,
    undefined,
    undefined,
  ]);
});
