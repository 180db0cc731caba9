import { hardThresholds, signalDurations, thresholds } from "../kinds/map-kinds.ts";
import { boolean, duration, integer, MAX_INT32 } from "../kinds/scalar-kinds.ts";
import { inapplicable, NONE, OURS, option, options, UPSTREAM } from "../option-row.ts";

export const PRESSURE_OPTIONS = options("Disk and memory pressure", {
  imageGcHighThresholdPercent: option("image-gc-high-threshold", "imageGCHighThresholdPercent", integer(0, 100), 85, {
    description: "Unused images are removed when the image disk is fuller than this per cent.",
    zeroCounts: true,
    live: true,
  }),
  imageGcLowThresholdPercent: option("image-gc-low-threshold", "imageGCLowThresholdPercent", integer(0, 100), 80, {
    description: "They are removed until the disk is no fuller than this per cent.",
    zeroCounts: true,
    live: true,
  }),
  minimumImageTtlMs: option("minimum-image-ttl-duration", "imageMinimumGCAge", duration(), 120_000, {
    description: "An image is kept at least this long after it was last used.",
    live: true,
  }),
  imageMaximumGcAgeMs: option("image-maximum-gc-age", "imageMaximumGCAge", duration(), 0, {
    description: "An image unused for longer is removed regardless of disk usage; 0s disables this.",
    live: true,
  }),
  minimumContainerTtlMs: option(
    "minimum-container-ttl-duration",
    "kubeletTs.minimumContainerTTLDuration",
    duration(),
    0,
    { description: "A dead container is kept at least this long.", live: true },
  ),
  maximumDeadContainersPerContainer: option(
    "maximum-dead-containers-per-container",
    OURS,
    integer(-1, MAX_INT32, "-1 = no limit"),
    1,
    { description: "Dead instances kept per container, for their logs.", live: true },
  ),
  maximumDeadContainers: option("maximum-dead-containers", OURS, integer(-1, MAX_INT32, "-1 = no limit"), -1, {
    description: "Dead containers kept in all; -1 sets no limit.",
    live: true,
  }),
  evictionHard: option(
    "eviction-hard",
    UPSTREAM,
    hardThresholds(),
    [
      { signal: "memory.available", quantity: 100 * 1024 * 1024 },
      { signal: "nodefs.available", percentage: 10 },
      { signal: "nodefs.inodesFree", percentage: 5 },
      { signal: "imagefs.available", percentage: 15 },
    ],
    {
      description:
        "Remaining amounts below which pods are evicted at once; the memory threshold also reduces allocatable memory.",
      zeroCounts: true,
      live: true,
    },
  ),
  evictionSoft: option("eviction-soft", UPSTREAM, thresholds("<"), [], {
    description: "Thresholds below which pods are evicted after a grace period.",
    live: true,
  }),
  evictionSoftGracePeriodMs: option("eviction-soft-grace-period", UPSTREAM, signalDurations, NONE, {
    description: "Those grace periods; each soft threshold needs one.",
    live: true,
  }),
  evictionMinimumReclaim: option("eviction-minimum-reclaim", UPSTREAM, thresholds("="), [], {
    description: "Amount to free beyond the threshold.",
    live: true,
  }),
  evictionPressureTransitionMs: option(
    "eviction-pressure-transition-period",
    "evictionPressureTransitionPeriod",
    duration(),
    300_000,
    { description: "How long pressure is still reported after it ended.", live: true },
  ),
  evictionMaxPodGracePeriodSeconds: option(
    "eviction-max-pod-grace-period",
    UPSTREAM,
    integer(-1, MAX_INT32, "-1 = the pod's own"),
    0,
    { description: "Longest grace period of a pod evicted by a soft threshold, in seconds; -1 takes the pod's own." },
  ),
  mergeDefaultEvictionSettings: option(undefined, UPSTREAM, boolean, false, {
    description: "Signals that --eviction-hard does not name keep their default thresholds.",
  }),
  volumeStatsAggPeriodMs: option("volume-stats-agg-period", UPSTREAM, duration(), 60_000, {
    description: "How often the disk usage of volumes is measured; 0s never.",
  }),
});

export const PRESSURE_OTHERS = [
  ...inapplicable(
    "memory is measured, not announced by the kernel",
    `
      kernel-memcg-notification?|kernelMemcgNotification experimental-kernel-memcg-notification?
      experimental-allocatable-ignore-eviction? low-diskspace-threshold-mb outofdisk-transition-frequency`,
  ),
];
