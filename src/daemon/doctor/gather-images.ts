import type { Pod } from "../../base/api/pod.ts";
import type { Secret } from "../../base/api/secret.ts";
import { containersOf } from "../../base/model/pod-containers.ts";
import type { RegistryAuth } from "../../base/model/registry-auth.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { type ImageReference, parseImageReference } from "../../base/text/image-reference.ts";
import type { DockerClient } from "../../docker/engine/docker-client.ts";
import { DockerError } from "../../docker/engine/docker-error.ts";
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
  client: Pick<DockerClient, "inspectImage" | "inspectDistribution">,
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
      const image = await client.inspectImage(name).catch(() => undefined);
      const needsRegistry = pullPolicy === "Always" || (!image && pullPolicy !== "Never");
      const remote =
        credentials && needsRegistry ? await askRegistry(client, name, pullSecrets, credentials) : undefined;
      return {
        name,
        present: image !== undefined,
        architecture: image?.Architecture ?? "",
        pullPolicy,
        ...(remote && { remote }),
      };
    }),
  );
}

async function askRegistry(
  client: Pick<DockerClient, "inspectDistribution">,
  name: string,
  pullSecrets: readonly Secret[],
  credentials: CredentialLookUp,
): Promise<RemoteImage> {
  const signal = AbortSignal.timeout(REGISTRY_TIMEOUT_MS);
  let last: unknown;
  try {
    const reference = parseImageReference(name);
    const auths = await credentials(reference, pullSecrets, signal);
    for (const auth of auths.length > 0 ? auths : [undefined]) {
      try {
        const found = await client.inspectDistribution(name, { auth, signal });
        return { architectures: found.Platforms.map(({ architecture }) => architecture).filter(Boolean) };
      } catch (error) {
        last = error;
        if (!(error instanceof DockerError)) break;
      }
    }
  } catch (error) {
    last = error;
  }
  return { problem: toProblem(last, signal) };
}

function toProblem(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return `no answer within ${REGISTRY_TIMEOUT_MS / 1000} s`;
  return error instanceof DockerError ? error.daemonMessage : messageOf(error);
}
