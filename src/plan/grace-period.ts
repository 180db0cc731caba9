/** Shortest time between SIGTERM and SIGKILL, whatever the manifest says. Source: the kubelet's minimumGracePeriod. */
export const MINIMUM_GRACE_SECONDS = 2;

/** Seconds a container has to end by itself, after `spentMs` of the grace period have gone (to hooks, to others). */
export function remainingGraceSeconds(graceSeconds: number, spentMs: number): number {
  return Math.max(MINIMUM_GRACE_SECONDS, Math.ceil((graceSeconds * 1000 - spentMs) / 1000));
}

/** For pause, which ends at once: the time is only for a signal that came before it listened. */
export const SANDBOX_GRACE_SECONDS = 5;
