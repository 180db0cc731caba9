import type { Container, Pod } from "../api/pod.ts";
import type { DeviceMapping } from "../docker/container-create-body.ts";

/**
 * Devices of a container: its mounts of hostPath volumes of type CharDevice and BlockDevice. A bind mount alone shows the
 * file, but the device cgroup refuses to open it. Privileged containers may open every device and keep the mount.
 */
export function computeHostDevices({ spec }: Pod, container: Container): DeviceMapping[] {
  if (container.securityContext?.privileged) return [];
  return (container.volumeMounts ?? []).flatMap(({ name, mountPath, readOnly, subPath, subPathExpr }) => {
    const source = spec.volumes?.find((volume) => volume.name === name)?.hostPath;
    const isDevice = source?.type === "CharDevice" || source?.type === "BlockDevice";
    if (!source || !isDevice || subPath || subPathExpr) return [];
    return [{ PathOnHost: source.path, PathInContainer: mountPath, CgroupPermissions: readOnly ? "r" : "rwm" }];
  });
}
