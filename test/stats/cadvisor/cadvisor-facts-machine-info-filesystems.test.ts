import { expect, test } from "bun:test";
import { parseFilesystems } from "../../../src/stats/cadvisor/cadvisor-facts.ts";

test("disks once, at their shortest mount point; tmpfs by theirs; of overlays only the root of a live system", () => {
  const mountinfo = [
    "28 1 0:28 / / rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w",
    "30 28 8:1 / /srv/data rw - ext4 /dev/sda1 rw",
    "31 28 8:1 /sub /srv rw shared:1 - ext4 /dev/sda1 rw",
    "32 28 0:30 / /run rw - tmpfs tmpfs rw",
    "33 28 0:31 / /proc rw - proc proc rw",
    "34 28 0:40 / /var/lib/docker/overlay2/abc/merged rw - overlay overlay rw",
    "35 28 0:41 / /var/lib/containers/storage/overlay/abc/merged rw - overlay overlay rw",
    "36 28 0:42 / /mnt/a\\040b rw - nfs4 server:/export rw",
    "",
  ].join("\n");
  expect(parseFilesystems(mountinfo)).toEqual([
    { device: "overlay_0-28", mountPoint: "/", id: "0:28" },
    { device: "/dev/sda1", mountPoint: "/srv", id: "8:1" },
    { device: "/run", mountPoint: "/run", id: "0:30" },
    { device: "server:/export", mountPoint: "/mnt/a b", id: "0:42" },
  ]);
});
