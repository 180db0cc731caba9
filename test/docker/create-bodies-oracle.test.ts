import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { type Container, PodSchema } from "../../src/base/api/pod.ts";
import type { Mount } from "../../src/base/model/container-engine.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { toContainerCreateBody, toSandboxCreateBody } from "../../src/docker/create-bodies.ts";
import type { ContainerCreateBody } from "../../src/docker/engine/container-create-body.ts";
import { toContainerName, toSandboxName } from "../../src/docker/labels.ts";
import { aContainerRequest, aSandboxRequest, ENGINE, type Json, OWNER } from "./mapping-requests.ts";
import { CASES, type Inspected, normalize, withoutNothing } from "./oracle-cases.ts";

/** The images of the oracle, as far as an engine lays them under what it is sent. */
const IMAGES: Record<string, { user: string; config: Json }> = {
  "busybox:test": { user: "", config: { Env: ["PATH=/bin"], Cmd: ["sh"] } },
  "oracle/ep:1": { user: "", config: { Env: ["PATH=/bin"], Entrypoint: ["/bin/echo", "ep"], Cmd: ["cmd0", "cmd1"] } },
  "oracle/nocmd:1": { user: "", config: { Env: ["PATH=/bin"] } },
  "oracle/named:1": { user: "app", config: { Env: ["PATH=/bin"], Cmd: ["sleep", "3600"] } },
  "oracle/full:1": {
    user: "1000:1001",
    config: {
      Env: ["PATH=/bin", "IMGVAR=from-image", "IMGVAR2=keep"],
      Entrypoint: ["/bin/sh", "-c", "echo zero=$0 args=$@; id; pwd; env | sort; while :; do sleep 1; done"],
      Cmd: ["cmd0", "cmd1"],
      WorkingDir: "/img/work",
      Volumes: { "/imgvol": {} },
      ExposedPorts: { "8080/tcp": {}, "9090/udp": {} },
      StopSignal: "SIGUSR1",
      Labels: { imglabel: "x" },
    },
  },
};

/** The container that the engine makes of a create body, in the fixtures' form: the image laid under it, its own defaults added. */
function toInspect(body: ContainerCreateBody, imageConfig: Json): Inspected {
  const {
    HostConfig,
    NetworkingConfig: _,
    ...config
  } = structuredClone(body) as unknown as Json & { HostConfig: Json };
  const hostConfig: Json = HostConfig;
  if (config.Entrypoint === undefined && config.Cmd === undefined) config.Cmd = imageConfig.Cmd;
  config.Entrypoint ??= imageConfig.Entrypoint;
  for (const key of ["WorkingDir", "Volumes", "StopSignal"]) config[key] ??= imageConfig[key];
  config.ExposedPorts = { ...(imageConfig.ExposedPorts as Json), ...(config.ExposedPorts as Json) };
  config.Labels = { ...(imageConfig.Labels as Json), ...(config.Labels as Json) };
  const env = (config.Env as string[] | undefined) ?? [];
  const set = new Set(env.map((entry) => entry.split("=", 1)[0]));
  const inherited = ((imageConfig.Env as string[] | undefined) ?? []).filter((one) => !set.has(one.split("=", 1)[0]));
  config.Env = [...env, ...inherited];
  // The engine switches SELinux separation off for containers that share namespaces with the host.
  if (hostConfig.RestartPolicy) hostConfig.RestartPolicy = { MaximumRetryCount: 0, ...hostConfig.RestartPolicy };
  const sharesHost = [hostConfig.PidMode, hostConfig.IpcMode].includes("host") || hostConfig.Privileged;
  if (sharesHost) hostConfig.SecurityOpt = [...((hostConfig.SecurityOpt as string[]) ?? []), "label=disable"];
  return { Config: withoutNothing(config), HostConfig: withoutNothing(hostConfig) };
}

/** Mounts of the recorded binds: the source as recorded, everything else from the manifest. */
function toMounts(container: Container, binds: readonly string[]): Mount[] {
  return (container.volumeMounts ?? []).map(({ mountPath, readOnly, mountPropagation }) => ({
    type: "bind",
    source: binds.find((bind) => bind.split(":")[1] === mountPath)!.split(":", 1)[0]!,
    target: mountPath,
    readOnly: readOnly ?? false,
    ...(mountPropagation && mountPropagation !== "None" && { propagation: mountPropagation }),
  }));
}

const sourceOf = (binds: readonly string[], target: string) =>
  binds.find((bind) => bind.endsWith(`:${target}`))?.split(":", 1)[0];

const SETTINGS = { ...DEFAULT_KUBELET_OPTIONS, seccompDefault: false, clusterDomain: "cluster.local" };

test("the oracle is there", () => {
  expect(CASES.length).toBeGreaterThan(45);
});

describe.each(CASES)("$name", ({ recorded }) => {
  const pod = v.parse(PodSchema, recorded.pod);
  const { sandbox, ...containers } = recorded.inspect;

  test("sandbox", () => {
    const body = toSandboxCreateBody(
      aSandboxRequest(pod, { image: "k8s.gcr.io/pause:3.2", settings: SETTINGS }),
      OWNER,
    );
    const ours = toInspect(body, { Entrypoint: ["/pause"] });
    // With the host's network the engine fills in the host's name.
    if (pod.spec.hostNetwork) ours.Config.Hostname = sandbox!.Config.Hostname;
    expect(normalize(ours, pod)).toEqual(normalize(structuredClone(sandbox!), pod));
    const attempt = Number(sandbox!.Name.slice(sandbox!.Name.lastIndexOf("_") + 1));
    expect(`/${toSandboxName(pod, attempt)}`).toBe(sandbox!.Name);
  });

  for (const [name, inspect] of Object.entries(containers)) {
    test(`container ${name}`, () => {
      const container = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].find((one) => one.name === name)!;
      const image = IMAGES[container.image!]!;
      const binds = (inspect.HostConfig.Binds as string[] | undefined) ?? [];
      const hostsFile = sourceOf(binds, "/etc/hosts");
      const recordedEnv = (inspect.Config.Env as string[] | undefined) ?? [];
      const terminationLogFile = sourceOf(binds, container.terminationMessagePath);
      const body = toContainerCreateBody(
        aContainerRequest(pod, {
          container,
          sandboxId: String(inspect.HostConfig.NetworkMode).slice("container:".length),
          image: {
            id: `image-id.${container.image!.replace(/[^a-zA-Z0-9.-]/g, "-")}`,
            user: image.user,
            healthcheck: undefined,
          },
          // Expansion is the plan's; here only that what it gives arrives unchanged and before the image's.
          env: recordedEnv.map((entry) => {
            const [key = ""] = entry.split("=", 1);
            return { name: key, value: entry.slice(key.length + 1) };
          }),
          ...(container.command && { command: (inspect.Config.Entrypoint as string[]) ?? [] }),
          ...(container.args && { args: (inspect.Config.Cmd as string[]) ?? [] }),
          mounts: toMounts(container, binds),
          engine: { ...ENGINE, negativeOomScores: false },
          paths: {
            ...(hostsFile && { hostsFile }),
            ...(terminationLogFile && { terminationLogFile }),
            seccompRoot: "/root-dir/seccomp",
            podLogsDir: "/var/log/pods",
          },
          settings: SETTINGS,
        }),
        OWNER,
      );
      const ours = toInspect(body, image.config);
      // In the network of another container the engine fills in that one's name.
      ours.Config.Hostname = inspect.Config.Hostname;
      expect(normalize(ours, pod)).toEqual(normalize(structuredClone(inspect), pod));
      expect(`/${toContainerName(pod, name, 0)}`).toBe(inspect.Name);
    });
  }
});
