import type { PodNetworks } from "../../base/model/pod-networks.ts";
import { messageOf } from "../../base/text/error-message.ts";
import type { DockerClient } from "../../docker/engine/docker-client.ts";
import { LABEL, toOwnershipFilter } from "../../docker/labels.ts";
import { CniNetworks } from "../../kubelet/cni/cni-networks.ts";
import type { NodeContext } from "./node-context.ts";

export const buildNetworks = ({ options, clock, logger, background }: NodeContext): PodNetworks =>
  new CniNetworks(
    {
      isEnabled: options.networkPlugin === "cni",
      confDir: options.cniConfDir,
      binDirs: options.cniBinDirs,
      cacheDir: options.cniCacheDir,
      files: {
        replaceFile: background.tasks.replaceFile,
        removeFile: background.tasks.removeFile,
        readDirectory: background.textFiles.readDirectory,
      },
    },
    clock,
    logger,
  );

/**
 * Releases the networks of sandboxes that were removed while no kubelet-ts ran, and checks those of the others in the
 * background: a network that has changed is reported, its pod is left alone.
 */
export async function adoptNetworks(
  { owner, logger }: NodeContext,
  client: DockerClient,
  networks: PodNetworks,
  signal: AbortSignal,
): Promise<void> {
  const filters = { label: [...toOwnershipFilter(owner), `${LABEL.type}=podsandbox`] };
  const sandboxes = await client.listContainers({ all: true, filters }, { signal });
  await networks.detachMissing(new Set(sandboxes.map(({ Id }) => Id)), signal);
  const check = async () => {
    for (const { Id, State, Labels } of sandboxes) {
      if (State !== "running" || !networks.holds(Id)) continue;
      const { State: state } = await client.inspectContainer(Id, { signal });
      if (!state.Running) continue;
      const problem = await networks.check({ id: Id, netns: `/proc/${state.Pid}/ns/net` }, signal);
      const pod = `${Labels[LABEL.podNamespace]}/${Labels[LABEL.podName]}`;
      if (problem !== undefined) logger.warn(`The network of pod "${pod}" has changed since it was set up: ${problem}`);
    }
  };
  check().catch((error: unknown) => {
    if (!signal.aborted) logger.warn(`The networks of pods cannot be checked: ${messageOf(error)}`);
  });
}
