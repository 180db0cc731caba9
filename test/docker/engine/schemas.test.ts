import { expect, test } from "bun:test";
import * as v from "valibot";
import {
  ContainerInspectSchema,
  ContainerSummarySchema,
  DiskUsageSchema,
  ImageInspectSchema,
  InfoSchema,
  VersionSchema,
} from "../../../src/docker/engine/schemas.ts";

const fixture = (name: string) => Bun.file(`${import.meta.dir}/../../fixtures/docker/${name}.json`).json();

test("a container as API 1.41 shows it", async () => {
  const seen = v.parse(ContainerInspectSchema, await fixture("container-inspect-1.41"));
  expect(seen.State).toMatchObject({ Status: "running", Running: true, Pid: 26863, ExitCode: 0 });
  expect(seen.Config).toMatchObject({ Cmd: ["sleep", "1000"], Entrypoint: null, Volumes: {}, StopSignal: "SIGQUIT" });
  expect(seen.Config.Labels).toEqual({ "io.kubernetes.pod.uid": "u1" });
  expect(seen.HostConfig).toMatchObject({ Memory: 64 << 20, NetworkMode: "none" });
  expect(seen.GraphDriver.Data.UpperDir).toStartWith("/var/lib/docker/overlay2/");
  expect(seen.NetworkSettings.Networks.none?.IPAddress).toBe("");
});

test("a container as API 1.52 shows it: addresses per network only, no graph driver data", async () => {
  const seen = v.parse(ContainerInspectSchema, await fixture("container-inspect-1.52"));
  expect(seen.NetworkSettings.Networks.bridge).toEqual({ IPAddress: "172.17.0.2", GlobalIPv6Address: "fd00:1::2" });
  expect(seen.GraphDriver).toEqual({ Data: {} });
});

test("a list of containers", async () => {
  const [seen] = v.parse(v.array(ContainerSummarySchema), await fixture("container-list-1.41"));
  expect(seen).toMatchObject({ Names: ["/kts-rec"], State: "running", Labels: { "io.kubernetes.pod.uid": "u1" } });
});

test("an image, with and without the fields that API 1.52 leaves out", async () => {
  const old = v.parse(ImageInspectSchema, await fixture("image-inspect-1.41"));
  expect(old).toMatchObject({ RepoTags: ["busybox:test"], RepoDigests: [], Architecture: "amd64" });
  expect(old.Config).toMatchObject({ Env: ["PATH=/bin"], Cmd: ["sh"], User: "", Entrypoint: null });
  const modern = v.parse(ImageInspectSchema, await fixture("image-inspect-1.52"));
  expect(modern.Config).toMatchObject({ Env: [], Cmd: null, User: "", Entrypoint: null, Volumes: {}, Labels: {} });
  expect(modern.RepoDigests).toEqual([]);
  expect(modern.RootFS.Layers).toHaveLength(1);
});

test("disk usage in both shapes", async () => {
  expect(v.parse(DiskUsageSchema, await fixture("df-1.41"))).toMatchObject({ LayersSize: 17736169, ImageUsage: null });
  expect(v.parse(DiskUsageSchema, await fixture("df-1.52")).ImageUsage).toEqual({ TotalSize: 17736169 });
});

test("version and info", async () => {
  expect(v.parse(VersionSchema, await fixture("version-1.41"))).toMatchObject({
    ApiVersion: "1.41",
    MinAPIVersion: "1.12",
    Arch: "amd64",
  });
  const info = v.parse(InfoSchema, await fixture("info-1.41"));
  expect(info).toMatchObject({
    CgroupDriver: "cgroupfs",
    CgroupVersion: "1",
    Driver: "overlay2",
    DiscoveredDevices: [],
  });
  expect(Object.keys(info.Runtimes)).toContain("runc");
});

test("null and absent are the same for lists and maps", () => {
  const least = { Id: "x", State: {}, Config: {}, HostConfig: {} };
  const nulls = { ...least, NetworkSettings: null, GraphDriver: null, Config: { Env: null, Labels: null } };
  expect(v.parse(ContainerInspectSchema, nulls)).toEqual(v.parse(ContainerInspectSchema, least));
});
