import { createHash } from "node:crypto";

/** Where an installation puts its files. */
export interface InstallPaths {
  binary: string;
  /** The binary before the last upgrade; `install --rollback` swaps it in. */
  previousBinary: string;
  manifestDir: string;
  config: string;
  unit: string;
  /** The link that lets the service start with the machine. */
  enabling: string;
}

/** How to make kubelet-ts a service where neither systemd nor OpenRC runs. */
export const OTHER_SERVICE_MANAGER =
  "have its own service manager run: kubelet-ts --pod-manifest-path=/etc/kubernetes/manifests";

/** A unit of systemd, or a script of OpenRC. */
export const MAX_UNIT_BYTES = 1 << 20;

export type ServiceManager = "systemd" | "systemd-user" | "openrc";

/** Paths for the whole machine, or below the home directory of a user. */
export function installPaths(manager: ServiceManager, home: string): InstallPaths {
  if (manager === "systemd-user") {
    return {
      binary: `${home}/.local/bin/kubelet-ts`,
      previousBinary: `${home}/.local/lib/kubelet-ts/kubelet-ts.previous`,
      manifestDir: `${home}/.config/kubelet-ts/manifests`,
      config: `${home}/.config/kubelet-ts/config.yaml`,
      unit: `${home}/.config/systemd/user/kubelet-ts.service`,
      enabling: `${home}/.config/systemd/user/default.target.wants/kubelet-ts.service`,
    };
  }
  return {
    binary: "/usr/local/bin/kubelet-ts",
    previousBinary: "/usr/local/lib/kubelet-ts/kubelet-ts.previous",
    manifestDir: "/etc/kubernetes/manifests",
    config: "/etc/kubelet-ts/config.yaml",
    unit: manager === "openrc" ? "/etc/init.d/kubelet-ts" : "/etc/systemd/system/kubelet-ts.service",
    enabling:
      manager === "openrc"
        ? "/etc/runlevels/default/kubelet-ts"
        : "/etc/systemd/system/multi-user.target.wants/kubelet-ts.service",
  };
}

/** A commented KubeletConfiguration; every line that is commented out shows the default. */
export const renderConfig = (
  paths: Pick<InstallPaths, "manifestDir">,
): string => `# Settings of kubelet-ts. All fields: docs/flags.md, or kubelet-ts help flags. Check: kubelet-ts config --config FILE
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
# Every manifest in this directory runs, now and after each change.
staticPodPath: ${paths.manifestDir}
# Time for pods to end when the machine shuts down.
shutdownGracePeriod: 30s
shutdownGracePeriodCriticalPods: 10s
# evictionHard:
#   memory.available: 100Mi
#   nodefs.available: 10%
# imageGCHighThresholdPercent: 85
# containerLogMaxSize: 10Mi
`;

const MARK = "# Installed by kubelet-ts install; checksum ";

/** Adds a first line by which a later installation recognizes a file that was not edited. */
export function withChecksum(text: string): string {
  const [first = "", ...rest] = text.split("\n");
  const mark = `${MARK}${checksum(text)}`;
  // A script's interpreter has to stay in the first line.
  return first.startsWith("#!") ? [first, mark, ...rest].join("\n") : `${mark}\n${text}`;
}

/** Whether an installation of any version wrote the text, which may have been edited since. */
export const isInstalled = (text: string): boolean => text.split("\n", 2).some((line) => line.startsWith(MARK));

/** Whether the text is as an installation of any version wrote it. */
export function isUnedited(text: string): boolean {
  const lines = text.split("\n");
  const index = lines.findIndex((line) => line.startsWith(MARK));
  if (index < 0 || index > 1) return false;
  return lines[index]!.slice(MARK.length).trim() === checksum(lines.toSpliced(index, 1).join("\n"));
}

const checksum = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 16);

/**
 * The systemd unit. Pods keep running when it stops. It is restricted by capabilities and system calls only: every
 * setting that gives it a mount namespace (ProtectHome, PrivateTmp, …) would hide its volume mounts from the engine.
 */
export const renderUnit = ({ binary, config }: Pick<InstallPaths, "binary" | "config">, isUser: boolean): string =>
  withChecksum(`[Unit]
Description=kubelet-ts: Kubernetes pods on Docker, without a cluster
Documentation=https://kubernetes.io/docs/concepts/workloads/pods/
${isUser ? "After=docker.service\nWants=docker.service\n" : "After=docker.service network-online.target\nWants=docker.service network-online.target\n"}StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
${isUser ? "Environment=DOCKER_HOST=unix://%t/docker.sock\n" : ""}ExecStart=${binary} --config=${config}
ExecReload=/bin/kill -HUP $MAINPID
Restart=always
RestartSec=2s
# Settings that are wrong do not get better by a restart.
RestartPreventExitStatus=2
# A process whose event loop hangs is restarted; pods keep running.
WatchdogSec=120s
KillMode=mixed
TimeoutStopSec=90s
LimitNOFILE=1048576
${
  isUser
    ? ""
    : `OOMScoreAdjust=-999
LockPersonality=yes
NoNewPrivileges=yes
RestrictRealtime=yes
SystemCallArchitectures=native
SystemCallFilter=~@clock @cpu-emulation @module @obsolete @reboot @swap
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
CapabilityBoundingSet=~CAP_SYS_BOOT CAP_SYS_MODULE CAP_SYS_TIME CAP_WAKE_ALARM CAP_LINUX_IMMUTABLE CAP_MAC_ADMIN CAP_MAC_OVERRIDE
`
}
[Install]
WantedBy=${isUser ? "default.target" : "multi-user.target"}
`);

/** The OpenRC service of Alpine. */
export const renderOpenrc = ({ binary, config }: Pick<InstallPaths, "binary" | "config">): string =>
  withChecksum(`#!/sbin/openrc-run
description="kubelet-ts: Kubernetes pods on Docker, without a cluster"
supervisor=supervise-daemon
command=${binary}
command_args="--config=${config}"
respawn_delay=2
respawn_max=0
output_log=/var/log/kubelet-ts.log
error_log=/var/log/kubelet-ts.log
rc_ulimit="-n 1048576"
extra_started_commands="reload"

reload() {
	ebegin "Reading the configuration again"
	supervise-daemon "$RC_SVCNAME" --signal HUP
	eend $?
}

depend() {
	use net
	want docker
	after docker firewall
}
`);
