/** A pod that another pod waits for before it starts. */
export interface PodDependency {
  namespace: string;
  /** As in the manifest, without the node suffix. */
  name: string;
  condition: DependencyCondition;
}

/** `Running`: every container runs. `Ready`: the condition Ready is True. `Succeeded`: the pod ended with success. */
export type DependencyCondition = "Running" | "Ready" | "Succeeded";

const CONDITIONS: readonly DependencyCondition[] = ["Running", "Ready", "Succeeded"];
const NAME = /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;
const MAX_DEPENDENCIES = 64;

/**
 * The value of `kubelet-ts.io/depends-on`: `default/db=Ready,default/migrate=Succeeded`; the condition is Ready when it is
 * left out.
 * @returns undefined when the value has another format
 */
export function parseDependsOn(text: string): PodDependency[] | undefined {
  const parts = text.split(",").map((part) => part.trim());
  if (parts.length > MAX_DEPENDENCIES) return undefined;
  const dependencies = parts.map(parseDependency);
  return dependencies.every((dependency) => dependency !== undefined) ? dependencies : undefined;
}

function parseDependency(text: string): PodDependency | undefined {
  const [target = "", condition = "Ready", ...rest] = text.split("=");
  const [namespace = "", name = "", ...more] = target.split("/");
  const known = CONDITIONS.find((candidate) => candidate === condition);
  if (!known || rest.length > 0 || more.length > 0 || !NAME.test(namespace) || !NAME.test(name)) return undefined;
  return { namespace, name, condition: known };
}
