import { type ResourceDefinition, ResourceRegistry } from "../resource-definition.ts";
import { coreKinds } from "./core-kinds.ts";
import type { ReadSubmitted } from "./decode-manifest.ts";
import { workloadKinds } from "./workload-kinds.ts";

/** Every kind the API serves: a kind is added by one row here. */
export const servedKinds = (read: ReadSubmitted): ResourceDefinition[] => [...coreKinds(read), ...workloadKinds(read)];

export const buildRegistry = (read: ReadSubmitted): ResourceRegistry => new ResourceRegistry(servedKinds(read));
