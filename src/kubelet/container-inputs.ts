import type { Container, Pod } from "../base/api/pod.ts";
import { seccompProfilePath } from "../docker/security.ts";
import type { PodVolumes } from "./pod-effects.ts";
import type { HostFiles } from "./volumes/host-files.ts";

/** Limit of a seccomp profile. */
const MAX_PROFILE_BYTES = 8 * 1024 * 1024;

/** Files that were read for the mappings of one container, which are synchronous. A getter throws what its read threw. */
interface ContainerInputs {
  readEnvFile(volumeName: string, path: string): string | undefined;
  readProfile(path: string): string;
}

/** Reads what the environment and the security options of a container come from. */
export async function readContainerInputs(
  pod: Pod,
  container: Container,
  seccompRoot: string,
  { volumes, files }: { volumes: Pick<PodVolumes, "readEnvFile">; files: Pick<HostFiles, "readText"> },
): Promise<ContainerInputs> {
  const envFiles = new Map<string, () => string | undefined>();
  for (const { valueFrom } of container.env ?? []) {
    if (!valueFrom?.fileKeyRef) continue;
    const { volumeName, path } = valueFrom.fileKeyRef;
    envFiles.set(keyOf(volumeName, path), await outcomeOf(volumes.readEnvFile(pod, volumeName, path)));
  }
  const profile = seccompProfilePath(pod, container, seccompRoot);
  const takeProfile = profile === undefined ? undefined : await outcomeOf(files.readText(profile, MAX_PROFILE_BYTES));
  return {
    readEnvFile: (volumeName, path) => envFiles.get(keyOf(volumeName, path))?.(),
    readProfile: (path) => {
      if (path !== profile || !takeProfile) throw new Error(`"${path}" was not read`);
      return takeProfile();
    },
  };
}

const keyOf = (volumeName: string, path: string) => `${volumeName}\0${path}`;

async function outcomeOf<T>(promise: Promise<T>): Promise<() => T> {
  try {
    const value = await promise;
    return () => value;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}
