import type { Secret } from "../../base/api/config-objects.ts";
import type { Pod } from "../../base/api/pod.ts";
import { containersOf } from "../../base/model/pod.ts";
import type { RegistryAuth } from "../../base/model/registry-auth.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { type ImageReference, parseImageReference } from "../../base/text/image-reference.ts";
import type { DockerHost } from "../../docker/docker-host.ts";
import { resolvePullSecrets } from "../../plan/object-references.ts";

/** Response of the registry about an image. */
type RemoteImage =
  /** Why it cannot be pulled. */
  | { problem: string }
  /** As Docker names them: amd64, arm64; empty where the registry does not report it. */
  | { architectures: readonly string[] };

export interface ImageFacts {
  name: string;
  present: boolean;
  /** As Docker names it; "" when the image is not present. */
  architecture: string;
  pullPolicy: string;
  /** Absent when no registry was asked. */
  remote?: RemoteImage;
}

const MAX_IMAGES = 200;
/** A registry that does not answer by then is reported. */
const REGISTRY_TIMEOUT_MS = 15_000;

/** Credentials for an image, best first, as for a pull. */
export type CredentialLookUp = (
  reference: ImageReference,
  pullSecrets: readonly Secret[],
  signal: AbortSignal,
) => Promise<RegistryAuth[]>;

/**
 * Facts about the images of pods.
 * @param secrets by full name, for the pods' pull secrets
 * @param credentials asked for images that the registry has to have; absent: no registry is asked
 */
export async function gatherImages(
  host: Pick<DockerHost, "architectureOf" | "registryArchitectures">,
  pods: readonly Pick<Pod, "metadata" | "spec">[],
  secrets: ReadonlyMap<string, Secret>,
  credentials: CredentialLookUp | undefined,
): Promise<ImageFacts[]> {
  const wanted = new Map<string, { pullPolicy: string; pullSecrets: readonly Secret[] }>();
  for (const pod of pods) {
    const pullSecrets = resolvePullSecrets(pod, { secrets });
    for (const { image = "", imagePullPolicy: pullPolicy = "" } of containersOf(pod.spec)) {
      // One container that always pulls is enough to need the registry.
      if (wanted.get(image)?.pullPolicy !== "Always") wanted.set(image, { pullPolicy, pullSecrets });
    }
  }
  return Promise.all(
    [...wanted].slice(0, MAX_IMAGES).map(async ([name, { pullPolicy, pullSecrets }]): Promise<ImageFacts> => {
      const architecture = await host.architectureOf(name);
      const needsRegistry = pullPolicy === "Always" || (architecture === undefined && pullPolicy !== "Never");
      let remote: RemoteImage | undefined;
      if (credentials && needsRegistry) {
        const signal = AbortSignal.timeout(REGISTRY_TIMEOUT_MS);
        try {
          const auths = await credentials(parseImageReference(name), pullSecrets, signal);
          remote = { architectures: await host.registryArchitectures(name, auths, signal) };
        } catch (error) {
          const problem = signal.aborted ? `no answer within ${REGISTRY_TIMEOUT_MS / 1000} s` : messageOf(error);
          remote = { problem };
        }
      }
      return {
        name,
        present: architecture !== undefined,
        architecture: architecture ?? "",
        pullPolicy,
        ...(remote && { remote }),
      };
    }),
  );
}
