import type { ApiObject } from "../api-object.ts";
import { type Fields, specOf, statusOf } from "./kind-row.ts";

/** Calls `complete` once for each object. */
function memoized(complete: (object: ApiObject) => ApiObject): (object: ApiObject) => ApiObject {
  const known = new WeakMap<ApiObject, ApiObject>();
  return (object) => {
    const shown = known.get(object) ?? complete(object);
    known.set(object, shown);
    return shown;
  };
}

/** A claim with the volume it is bound to, which its status carries and its text does not. */
export const showVolumeOfClaim = memoized((claim) => {
  const { volume, ...status } = statusOf(claim) as Fields & { volume?: { name: string } };
  if (!volume) return claim;
  return { ...claim, spec: { ...specOf(claim), volumeName: volume.name }, status };
});

/** A PersistentVolume with the claim that is bound to it. */
export const showClaimOfVolume = memoized((volume) => {
  const { claim, ...status } = statusOf(volume) as Fields & { claim?: { namespace: string; name: string } };
  if (!claim) return volume;
  const claimRef = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    ...claim,
    ...(specOf(volume).claimRef as object),
  };
  return { ...volume, spec: { ...specOf(volume), claimRef }, status };
});

/** Data is never removed with its claim. */
export function warnOfKeptData(claim: ApiObject): string | undefined {
  const { volume } = statusOf(claim) as { volume?: { name: string; isDockerVolume: boolean } };
  if (!volume?.isDockerVolume) return undefined;
  return `the data of the claim stays in Docker volume "${volume.name}": docker volume rm ${volume.name} removes it`;
}

/** A Service with the defaults that mean nothing here, but that kubectl describe prints. Source: core/v1 defaults. */
export const showServiceDefaults = memoized((service) => {
  const { clusterIP, ports, ...spec } = specOf(service) as Fields & {
    ports?: { port: number; targetPort?: unknown }[];
  };
  const shownPorts = ports?.map((port) => ({ ...port, targetPort: port.targetPort ?? port.port }));
  return {
    ...service,
    spec: {
      ...(clusterIP !== undefined && { clusterIP, clusterIPs: [clusterIP] }),
      ...(shownPorts && { ports: shownPorts }),
      sessionAffinity: "None",
      ...spec,
    },
  };
});
