import type { DockerClient } from "../src/docker/engine/docker-client.ts";
import type { ContainerSummary } from "../src/docker/engine/schemas.ts";
import { LABEL } from "../src/docker/labels.ts";

type Body = Record<string, unknown>;

/** The create bodies of one pod: the sandbox, and the containers that join it. */
export interface PodBodies {
  sandbox: Body;
  containers: Body[];
}

interface RawInspect {
  Config: { Labels: Record<string, string> } & Body;
  HostConfig: Body;
}

/**
 * The requests of kubelet-ts, read back from the engine, so that the floor does the same work: same labels, limits and
 * mounts, but with `nodeName` in the ownership labels.
 */
export async function readPodBodies(
  docker: DockerClient,
  containers: readonly ContainerSummary[],
  nodeName: string,
): Promise<PodBodies[]> {
  const toBody = async (id: string): Promise<Body> => {
    const { Config, HostConfig } = (await docker.inspectContainerRaw(id)) as unknown as RawInspect;
    // The engine gives every container a host name of its own, but refuses one together with another container's network.
    const { Hostname, Domainname, ...config } = Config;
    const joins = String(HostConfig.NetworkMode).startsWith("container:");
    return {
      ...config,
      ...(joins ? {} : { Hostname, Domainname }),
      Labels: { ...Config.Labels, [LABEL.node]: nodeName },
      HostConfig,
    };
  };
  const sandboxes = containers.filter(({ Labels }) => Labels[LABEL.type] === "podsandbox");
  return await Promise.all(
    sandboxes.map(async (sandbox) => ({
      sandbox: await toBody(sandbox.Id),
      containers: await Promise.all(
        containers.filter(({ Labels }) => Labels[LABEL.sandboxId] === sandbox.Id).map(({ Id }) => toBody(Id)),
      ),
    })),
  );
}

/** Replaces the sandbox in modes that name a container by the floor's own. */
function joinSandbox(body: Body, sandboxId: string): Body {
  const hostConfig = { ...(body.HostConfig as Body) };
  for (const mode of ["NetworkMode", "IpcMode", "PidMode"]) {
    if (String(hostConfig[mode] ?? "").startsWith("container:")) hostConfig[mode] = `container:${sandboxId}`;
  }
  return { ...body, HostConfig: hostConfig };
}

let generation = 0;

/**
 * The bare loop: creates and starts the same pods without anything else, `concurrency` pods at a time.
 * @returns milliseconds from the first call to the last answer
 */
export async function startBare(
  docker: DockerClient,
  pods: readonly PodBodies[],
  concurrency: number,
): Promise<number> {
  generation += 1;
  const prefix = `floor-${process.pid}-${generation}`;
  let next = 0;
  const startPods = async () => {
    for (let index = next++; index < pods.length; index = next++) {
      const pod = pods[index];
      if (pod === undefined) return;
      const sandbox = await docker.createContainer(`${prefix}-${index}`, pod.sandbox);
      await docker.startContainer(sandbox.Id);
      for (const [number, body] of pod.containers.entries()) {
        const { Id } = await docker.createContainer(`${prefix}-${index}-${number}`, joinSandbox(body, sandbox.Id));
        await docker.startContainer(Id);
      }
    }
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: Math.min(concurrency, pods.length) }, startPods));
  return performance.now() - started;
}
