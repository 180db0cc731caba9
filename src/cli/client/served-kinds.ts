import type { ResourceDefinition } from "../../apiserver/resource-definition.ts";

/** Every kind that a kubelet of this version serves; works without a running kubelet. */
export async function loadServedKinds(): Promise<ResourceDefinition[]> {
  const { servedKinds } = await import("../../apiserver/kinds/served-kinds.ts");
  return servedKinds(() => {
    throw new Error("no object is read here");
  });
}

/** Names of a kind: `pods`, `pod`, `po`. */
export const kindNames = ({ plural, singular, kind, shortNames = [] }: ResourceDefinition): string[] => [
  ...new Set([plural, singular, kind.toLowerCase(), ...shortNames]),
];
