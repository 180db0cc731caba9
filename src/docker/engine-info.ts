import type { EngineInfo } from "../base/model/node.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import type { EngineInfoResponse } from "./engine/system-schema.ts";

/** The machine's own containerd, where it is, and its default state directory. */
const CONTAINERD_ADDRESS = "/run/containerd/containerd.sock";
const CONTAINERD_ROOT = "/var/lib/containerd";

/**
 * Where images and what containers write lie. An engine with its images in containerd has them in its own directory only
 * when that containerd is its child; else they are where the machine's containerd keeps them.
 */
export function toImagesDir({
  DockerRootDir,
  DriverStatus,
  Containerd,
}: Pick<EngineInfoResponse, "DockerRootDir" | "DriverStatus" | "Containerd">): string {
  const isInContainerd = DriverStatus.flat().includes("io.containerd.snapshotter.v1");
  return isInContainerd && Containerd?.Address === CONTAINERD_ADDRESS ? CONTAINERD_ROOT : DockerRootDir;
}

/**
 * Reads the engine's capabilities; called once per connection.
 * @param negativeOomScores whether the kernel lets the engine lower an OOM score
 * @throws what the client throws
 */
export async function readEngineInfo(
  client: DockerClient,
  negativeOomScores: boolean,
  signal?: AbortSignal,
): Promise<EngineInfo> {
  const [info, { apiVersion }] = await Promise.all([client.info({ signal }), client.engine({ signal })]);
  return {
    apiVersion,
    serverVersion: info.ServerVersion,
    cgroupDriver: info.CgroupDriver === "systemd" ? "systemd" : "cgroupfs",
    cgroupVersion: info.CgroupVersion === "2" ? 2 : 1,
    dockerRootDir: info.DockerRootDir,
    imagesDir: toImagesDir(info),
    ...(info.Driver !== "" && { storageDriver: info.Driver }),
    // In its user namespace a rootless engine may not, although it may inside.
    negativeOomScores: negativeOomScores && !info.SecurityOptions.includes("name=rootless"),
    securityOptions: info.SecurityOptions,
    architecture: info.Architecture,
    runtimes: Object.keys(info.Runtimes),
    ...(info.DiscoveredDevices.length > 0 && { cdiDevices: info.DiscoveredDevices.map(({ ID }) => ID) }),
  };
}
