import { expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import { toFilesystems, toImageRows } from "../../../src/daemon/assembly/page-node-detail.ts";
import type { NodeFilesystem } from "../../../src/stats/cadvisor/cadvisor-facts.ts";

const fs = (device: string, mountPoint: string) =>
  ({ device, mountPoint, capacity: { capacityBytes: 100e6, availableBytes: 30e6 } }) as NodeFilesystem;

test("a file system is reported with what the kubelet keeps on it", () => {
  const filesystems = [
    fs("/dev/a", "/"),
    fs("/dev/b", "/var"),
    fs("/run", "/run"),
    fs("/x", "/root/pods/u/volumes/v"),
    fs("/dev/shm", "/dev/shm"),
    fs("s", `/data/containers/${"a".repeat(64)}/mounts/shm`),
  ];
  const places = { "root directory": "/var/lib/kubelet", images: "/variant/docker" };
  expect(
    toFilesystems({ filesystems }, places).map(({ mountPoint, use, usedBytes }) => [mountPoint, use, usedBytes]),
  ).toEqual([
    ["/", "images", 70e6],
    ["/var", "root directory", 70e6],
    ["/run", "", 70e6],
  ]);
});

test("images: the largest first, in use by id or name, else the last use", () => {
  const image = (id: string, names: string[], sizeBytes: number) => ({ id, names, sizeBytes, createdSeconds: 1 });
  const pod = {
    metadata: { namespace: "default", name: "web" },
    status: {
      containerStatuses: [
        { image: "web:1", imageID: "docker://sha256:x" },
        { image: "other", imageID: "docker://sha256:b" },
      ],
    },
  } as unknown as Pod;
  const images = [
    image("sha256:a", ["web:1"], 1),
    image("sha256:b", [], 3),
    image("sha256:c", ["old:1"], 2),
    image("sha256:d", [], 0),
  ];
  const gc = {
    unusedMs: (id: string) => (id === "sha256:c" ? 400 : undefined),
    // As of the last pass: the pod has begun to use the first one since.
    removable: new Set(["sha256:a", "sha256:c"]),
  };
  expect(
    toImageRows(images, [pod], gc, 1000).map(({ id, usedBy, isRemovable, lastUse }) => [
      id,
      usedBy.join(),
      isRemovable,
      lastUse,
    ]),
  ).toEqual([
    ["sha256:b", "default/web", false, 0],
    ["sha256:c", "", true, 600],
    ["sha256:a", "default/web", false, 0],
    ["sha256:d", "", false, 0],
  ]);
});
