import type { DockerClient } from "../docker/docker-client.ts";
import type { EngineInfo } from "../model/node.ts";

/**
 * What the engine can do, asked once per connection.
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
    // In its user namespace a rootless engine may not, whatever it may do inside.
    negativeOomScores: negativeOomScores && !info.SecurityOptions.includes("name=rootless"),
    securityOptions: info.SecurityOptions,
    architecture: info.Architecture,
    runtimes: Object.keys(info.Runtimes),
    ...(info.DiscoveredDevices.length > 0 && { cdiDevices: info.DiscoveredDevices.map(({ ID }) => ID) }),
  };
}
