import {
  IMAGE_HEALTHCHECK_ANNOTATION,
  type ImageHealthcheckKind,
  imageHealthcheckOf,
} from "../base/api/annotations.ts";
import type { Container, Pod, Probe } from "../base/api/pod.ts";
import { mapContainers } from "../base/model/pod.ts";
import type { ContainerSnapshot, ImageHealthcheck } from "../base/model/pod-snapshot.ts";
import { withoutExpansion } from "./environment.ts";

/** Docker's defaults. */
const DEFAULT_SECONDS = 30;
const DEFAULT_RETRIES = 3;

/**
 * The HEALTHCHECK of an image as a probe. Failures in its start period do not restart the container; a container that is
 * healthy earlier is ready. Source: Docker's `HEALTHCHECK`.
 * @returns undefined for `NONE`
 */
export function toImageProbe(
  kind: ImageHealthcheckKind,
  { test, intervalMs, timeoutMs, startPeriodMs, retries }: ImageHealthcheck,
): Probe | undefined {
  const [how, ...words] = test;
  const command = how === "CMD-SHELL" ? ["/bin/sh", "-c", words.join(" ")] : how === "CMD" ? words : [];
  if (command.length === 0) return undefined;
  return {
    // The engine expands no variables.
    exec: { command: command.map(withoutExpansion) },
    ...(kind === "liveness" && startPeriodMs > 0 && { initialDelaySeconds: toSeconds(startPeriodMs) }),
    timeoutSeconds: toSeconds(timeoutMs),
    periodSeconds: toSeconds(intervalMs),
    successThreshold: 1,
    failureThreshold: retries || DEFAULT_RETRIES,
  };
}

const toSeconds = (ms: number): number => (ms > 0 ? Math.max(1, Math.round(ms / 1000)) : DEFAULT_SECONDS);

/**
 * The pod with the probes that the images of its containers have. A probe of the manifest wins. Pure.
 * @param containers newest first
 * @returns the same pod where there are none
 */
export function withImageProbes(pod: Pod, containers: readonly ContainerSnapshot[]): Pod {
  if (pod.metadata.annotations?.[IMAGE_HEALTHCHECK_ANNOTATION] === undefined) return pod;
  let isChanged = false;
  const withProbe = <T extends Container>(container: T): T => {
    const isInit = pod.spec.initContainers?.some(({ name }) => name === container.name);
    if (isInit && container.restartPolicy !== "Always") return container;
    const kind = imageHealthcheckOf(pod.metadata, container.name);
    const { healthcheck } = containers.find(({ name }) => name === container.name) ?? {};
    const probe = kind && healthcheck && !container[`${kind}Probe`] && toImageProbe(kind, healthcheck);
    if (!probe) return container;
    isChanged = true;
    return { ...container, [`${kind}Probe`]: probe };
  };
  const spec = mapContainers(pod.spec, withProbe);
  return isChanged ? { ...pod, spec } : pod;
}
