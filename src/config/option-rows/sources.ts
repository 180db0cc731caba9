import { pathList, secretHeaders, urlList } from "../kinds/list-kinds.ts";
import { boolean, directory, duration, file, fileOrDirectory, oneOf } from "../kinds/scalar-kinds.ts";
import { type CommandRow, OURS, option, options, UPSTREAM } from "../option-row.ts";

export const SOURCE_OPTIONS = {
  ...options("Pods from files and URLs", {
    podManifestPaths: option("pod-manifest-path", "staticPodPath", pathList, [], {
      description: "Directory of manifests, or one manifest file. Repeatable.",
    }),
    manifestUrls: option("manifest-url", "staticPodURL", urlList, [], {
      description: "URL (http, https or unix:/socket:/path) of a Pod, a PodList or several documents. Repeatable.",
    }),
    manifestUrlHeaders: option("manifest-url-header", "staticPodURLHeader", secretHeaders, [], {
      description: "Header sent to every manifest URL, as name:value. Repeatable; values are never shown.",
    }),
    manifestUrlCaFile: option("manifest-url-ca-file", "kubeletTs.manifestUrlCAFile", file, "", {
      description: "PEM file with the certificate authorities trusted for https manifest URLs.",
      defaultText: "those of the system",
    }),
    manifestUrlClientCertFile: option("manifest-url-client-cert-file", OURS, file, "", {
      description: "PEM file with the client certificate shown to https manifest URLs.",
    }),
    manifestUrlClientKeyFile: option("manifest-url-client-key-file", OURS, file, "", {
      description: "PEM file with the private key of the client certificate.",
    }),
    manifestIdentityFile: option("manifest-identity-file", OURS, file, "", {
      description: "File with the age identities (AGE-SECRET-KEY-…) that decrypt encrypted manifests.",
    }),
    manifestUrlTimeoutMs: option("manifest-url-timeout", OURS, duration(1), 10_000, {
      description: "Timeout of one request to a manifest URL, including the response body.",
    }),
    fileCheckFrequencyMs: option("file-check-frequency", UPSTREAM, duration(1), 20_000, {
      description: "Interval of full checks of manifest files; changes are noticed at once.",
    }),
    httpCheckFrequencyMs: option("http-check-frequency", UPSTREAM, duration(1), 20_000, {
      description: "Interval of requests to manifest URLs.",
    }),
    syncFrequencyMs: option("sync-frequency", UPSTREAM, duration(1), 60_000, {
      description: "Longest time between two full checks of a pod; events trigger one at once.",
    }),
    validate: option("validate", OURS, oneOf("strict", "standard", "warn", "ignore"), "standard", {
      description:
        "Unknown fields in manifests and configuration files: an error (strict, standard), a warning, or ignored. With strict, objects without effect on one node are errors too.",
      live: true,
    }),
    rollout: option("rollout", OURS, oneOf("parallel", "serial"), "parallel", {
      description:
        "Edited pods change all at once, or (serial) one after the other, each when the one before is Ready; a failure stops the rest.",
    }),
  }),
  ...options("Run once", {
    runOnce: option("runonce", UPSTREAM, boolean, false, {
      description: "Start the pods of all manifests, wait for them (see --wait), and exit; containers stay.",
    }),
    runOnceWait: option("wait", OURS, oneOf("ready", "running", "completed", "none"), "ready", {
      description:
        "What --runonce waits for: every pod Ready or Succeeded, all containers running, every pod completed, or only the start of each container.",
    }),
    runOnceTimeoutMs: option("timeout", OURS, duration(), 300_000, {
      description: "How long --runonce waits for all pods; what is not reached by then has failed. 0s sets no limit.",
    }),
    output: option("output", undefined, oneOf("text", "json", "yaml"), "text", {
      short: "o",
      description: "How --runonce reports.",
    }),
  }),
  ...options("Configuration", {
    dynamicConfigDir: option("dynamic-config-dir", OURS, directory, "/var/lib/kubelet/config", {
      description:
        "Directory of the configuration that was tried last (.cur) and of the last known good one (.lkg), which is used when the files of --config and --config-dir cannot be.",
      defaultText: "<root-dir>/config",
    }),
    configTrialPeriodMs: option("config-trial-period", OURS, duration(), 600_000, {
      description:
        "How long a changed configuration must be healthy to become the last known good one; 0s: no trial and no way back.",
    }),
  }),
};

export const COMMAND_ROWS: readonly CommandRow[] = [
  {
    is: "command",
    flag: "config",
    kind: fileOrDirectory,
    subject: "Configuration",
    description:
      "A KubeletConfiguration file (YAML or JSON). A directory or a manifest here means the same as --pod-manifest-path, as in old kubelets.",
  },
  {
    is: "command",
    flag: "config-dir",
    kind: directory,
    subject: "Configuration",
    description: "Directory of *.conf files laid over the configuration file, in the order of their names.",
  },
  { is: "command", flag: "help", short: "h", kind: boolean, subject: "Configuration", description: "Show this help." },
  {
    is: "command",
    flag: "version",
    kind: boolean,
    subject: "Configuration",
    description: "Show the version.",
  },
];
