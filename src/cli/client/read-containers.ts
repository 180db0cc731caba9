import * as v from "valibot";
import { DockerClient } from "../../docker/engine/docker-client.ts";
import { isNotFound } from "../../docker/engine/docker-error.ts";
import type { DockerEndpoint } from "../../docker/engine/endpoint.ts";
import { LABEL } from "../../docker/labels.ts";
import type { DockerContainer } from "../import/docker.ts";
import { InspectedContainerSchema, InspectedImageSchema } from "../import/docker-inspect.ts";
import { CommandError } from "../sub-command.ts";

const TIMEOUT_MS = 15_000;

/**
 * Inspects containers and their images; changes nothing.
 * @param names names, ids or prefixes of ids; two of one container count once
 * @throws CommandError, DockerError, DockerUnreachableError
 */
export async function readContainers(endpoint: DockerEndpoint, names: readonly string[]): Promise<DockerContainer[]> {
  const client = new DockerClient(endpoint);
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const found = new Map<string, DockerContainer>();
  for (const name of names) {
    const one = await readContainer(client, name, signal);
    found.set(one.container.Id, one);
  }
  return [...found.values()];
}

async function readContainer(client: DockerClient, name: string, signal: AbortSignal): Promise<DockerContainer> {
  const raw = await answered(client.inspectContainerRaw(name, { signal }));
  if (raw === undefined) throw new CommandError(`there is no container "${name}": docker ps -a shows all`);
  const container = v.parse(InspectedContainerSchema, raw);
  const pod = container.Config.Labels[LABEL.podName];
  if (pod !== undefined)
    throw new CommandError(`container "${name}" is one of pod "${pod}": it has a manifest already`);
  const imageOf = async (reference: string) => {
    const answer = reference === "" ? undefined : await answered(client.inspectImageRaw(reference, { signal }));
    return answer && v.parse(InspectedImageSchema, answer);
  };
  const [image, current] = [await imageOf(container.Image), await imageOf(container.Config.Image)];
  return { container, ...(image && { image }), ...(current && { currentImageId: current.Id }) };
}

/** undefined for what the engine does not know. */
async function answered<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
