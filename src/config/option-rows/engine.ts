import {
  boolean,
  cronSchedule,
  directory,
  duration,
  file,
  imageUpdatePolicy,
  integer,
  MAX_INT32,
  optionalImageName,
  text,
  timeWindow,
} from "../kinds/scalar-kinds.ts";
import { inapplicable, OURS, option, options, refused, UPSTREAM } from "../option-row.ts";

const DOCKER_ONLY = "kubelet-ts runs pods on Docker only";

export const ENGINE_OPTIONS = options("Engine and images", {
  dockerEndpoint: option("docker-endpoint", OURS, text, "", {
    description: "Socket of the engine, e.g. unix:///var/run/docker.sock.",
    defaultText: "DOCKER_HOST, then /var/run/docker.sock",
  }),
  podInfraContainerImage: option("pod-infra-container-image", OURS, optionalImageName, "", {
    description: "Image of the container that holds a pod's network.",
    defaultText: "built in",
  }),
  runtimeRequestTimeoutMs: option("runtime-request-timeout", UPSTREAM, duration(1), 120_000, {
    description: "Timeout of requests to the engine, except pulls and waits.",
  }),
  imagePullProgressDeadlineMs: option("image-pull-progress-deadline", OURS, duration(1), 60_000, {
    description: "Time without progress after which a pull is canceled.",
  }),
  serializeImagePulls: option("serialize-image-pulls", UPSTREAM, boolean, true, {
    description: "Pull one image at a time.",
  }),
  maxParallelImagePulls: option("max-parallel-image-pulls", UPSTREAM, integer(0, MAX_INT32, "0 = no limit"), 0, {
    description: "Concurrent pulls when they are not serialized; 0 sets no limit.",
  }),
  registryPullQps: option("registry-qps", "registryPullQPS", integer(0, MAX_INT32, "0 = no limit"), 5, {
    description: "Pulls per second; 0 sets no limit.",
    zeroCounts: true,
  }),
  registryBurst: option("registry-burst", UPSTREAM, integer(0, MAX_INT32), 10, {
    description: "Pulls that may start at once within --registry-qps.",
  }),
  imageUpdate: option("image-update", OURS, imageUpdatePolicy, "never", {
    description: "Updates of images of pods without the annotation kubelet-ts.io/image-update.",
    live: true,
  }),
  imageUpdateSchedule: option("image-update-schedule", OURS, cronSchedule, "0 4 * * *", {
    description: "When registries are asked for newer images, as five fields of cron.",
    live: true,
  }),
  imageUpdateWindow: option("image-update-window", OURS, timeWindow, "always", {
    description: "When images may be exchanged: always, or a start and a length as in '0 2 * * sun +3h'.",
    live: true,
  }),
  imageUpdateJitterMs: option("image-update-jitter", OURS, duration(), 1_800_000, {
    description: "Longest random delay of a scheduled look-up, so that many nodes do not ask at once.",
    live: true,
  }),
  imagesDir: option("images-dir", OURS, directory, "", {
    description: "Directory of image archives (docker save) loaded before the first pod starts.",
  }),
  imageCredentialProviderConfig: option("image-credential-provider-config", OURS, file, "", {
    description: "CredentialProviderConfig file with the plug-ins asked for registry credentials.",
  }),
  imageCredentialProviderBinDir: option("image-credential-provider-bin-dir", OURS, directory, "", {
    description: "Directory of those plug-ins.",
  }),
});

export const ENGINE_OTHERS = [
  ...refused(`${DOCKER_ONLY}: remove the flag`, "container-runtime", ["", "docker"]),
  ...inapplicable(
    `${DOCKER_ONLY}: use --docker-endpoint`,
    `
      container-runtime-endpoint|containerRuntimeEndpoint
      image-service-endpoint|imageServiceEndpoint
      remote-runtime-endpoint
      remote-image-endpoint`,
    [""],
  ),
  ...inapplicable(
    "plug-ins are asked for credentials: use --image-credential-provider-config",
    "azure-container-registry-config",
  ),
  ...inapplicable(
    "there are no docker settings beyond --docker-endpoint",
    `
      docker docker-exec-handler docker-root docker-only? docker-env-metadata-whitelist docker-tls? docker-tls-ca
      docker-tls-cert docker-tls-key docker-disable-shared-pid? experimental-dockershim?
      experimental-dockershim-root-directory redirect-container-streaming? rkt-path rkt-api-endpoint rkt-stage1-image`,
  ),
];
