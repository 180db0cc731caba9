import { isIP } from "node:net";
import { parseDuration } from "./duration.ts";

/** Prefix of the annotations of pods that have a meaning to kubelet-ts only. */
export const ANNOTATION_PREFIX = "kubelet-ts.io/";

/** The Docker network of the pod. In a user-defined network other pods reach the pod by its name. */
export const NETWORK_ANNOTATION = "kubelet-ts.io/network";
/** A fixed IPv4 or IPv6 address in that network. */
export const IP_ANNOTATION = "kubelet-ts.io/ip";
/** The longest crash-loop back-off of the pod, a Go duration from 1s to 5m. */
export const MAX_RESTART_PERIOD_ANNOTATION = "kubelet-ts.io/max-container-restart-period";

export interface PodAnnotation {
  name: string;
  description: string;
  /** @returns the required format, or undefined when the value has it */
  check(value: string): string | undefined;
}

/** Docker's `RestrictedNamePattern`. */
const NETWORK_NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

/** All annotations of pods that kubelet-ts reads, for findings and docs/fields.md. */
export const POD_ANNOTATIONS: readonly PodAnnotation[] = [
  {
    name: NETWORK_ANNOTATION,
    description: "the Docker network of the pod; see [networking](networking.md)",
    check: (value) => (NETWORK_NAME.test(value) ? undefined : "the name of a Docker network"),
  },
  {
    name: IP_ANNOTATION,
    description: "a fixed address of the pod in that network",
    check: (value) => (isIP(value) === 0 ? "an IPv4 or IPv6 address" : undefined),
  },
  {
    name: MAX_RESTART_PERIOD_ANNOTATION,
    description: "the longest delay before a crashing container is started again, from `1s` to `5m`",
    check: (value) => {
      const ms = parseDuration(value);
      return ms !== undefined && ms >= 1000 && ms <= 300_000 ? undefined : "a duration from 1s to 5m";
    },
  },
];
