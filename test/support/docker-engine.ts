import { SystemClock } from "../../src/base/host/system-clock.ts";
import type { Clock } from "../../src/base/model/clock.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { DockerEngine } from "../../src/docker/docker-engine.ts";
import { DockerImages } from "../../src/docker/docker-images.ts";
import type { DockerClient } from "../../src/docker/engine/docker-client.ts";
import { RecordingLogger } from "./recording-logger.ts";

export const OWNER = { nodeName: "node1", rootHash: "0123456789abcdef" };

/** Docker as one owner sees it, without pull secrets and networks of plugins. */
export function aDockerEngine(socketPath: string, owner = OWNER): DockerEngine {
  const logger = new RecordingLogger();
  return new DockerEngine({
    endpoint: socketPath,
    environment: {},
    owner,
    clock: new SystemClock(),
    logger,
    options: DEFAULT_KUBELET_OPTIONS,
    mayLowerOomScores: () => false,
    pods: {},
  });
}

/** The images of an engine. */
export const someDockerImages = (client: DockerClient, clock: Clock = new SystemClock()): DockerImages =>
  new DockerImages({ client, owner: OWNER, clock, logger: new RecordingLogger(), pauseOverride: "" });
