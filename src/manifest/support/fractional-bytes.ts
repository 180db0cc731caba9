import type { Pod, ResourceRequirements } from "../../base/api/pod.ts";
import { parseQuantity, quantityToWhole } from "../../base/api/quantity.ts";
import type { FieldPath } from "../field-path.ts";
import type { SupportNote } from "./find-unsupported.ts";

const COUNTS_BYTES = /^(memory|ephemeral-storage|hugepages-.*)$/;

/**
 * Warns of fractions of bytes: `memory: 100m` is valid but means a tenth of a byte, and the engine's error (`cannot
 * allocate memory`) does not point to it. Source: upstream's warning of fractional byte values.
 * @param path of the pod in its document
 */
export function findFractionalBytes({ spec }: Pod, path: FieldPath): SupportNote[] {
  const at = path.child("spec");
  const ofContainers = (["initContainers", "containers"] as const).flatMap((list) =>
    (spec[list] ?? []).flatMap(({ resources }, index) =>
      findIn(resources, at.child(list).index(index).child("resources")),
    ),
  );
  return [...ofContainers, ...(spec.resources ? findIn(spec.resources, at.child("resources")) : [])];
}

function findIn(resources: ResourceRequirements, path: FieldPath): SupportNote[] {
  return (["limits", "requests"] as const).flatMap((list) =>
    Object.entries(resources[list] ?? {}).flatMap(([name, text]): SupportNote[] => {
      if (!COUNTS_BYTES.test(name) || !/[mun]$/.test(text) || !parseQuantity(text)) return [];
      // The request was filled in from the limit.
      if (list === "requests" && resources.limits?.[name] === text) return [];
      const whole = quantityToWhole(text);
      // 1.1Mi is a fraction as well: 1153433600m.
      if (whole >= 1024) return [];
      const amount = text.slice(0, -1);
      const message = `counts as ${whole} byte${whole === 1 ? "" : "s"}: "${text}" is a fraction; ${amount}M is megabytes, ${amount}Mi mebibytes`;
      return [{ code: "ignored", path: path.child(list).key(name), message }];
    }),
  );
}
