import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Pod } from "../../src/base/api/pod.ts";
import type { Json } from "./mapping-requests.ts";

/** One container as `docker inspect` shows it, as far as it is compared. */
export interface Inspected {
  Config: Json;
  HostConfig: Json;
}

/** One pod of the oracle; see test/fixtures/oracle/README.md. */
export interface Recorded {
  pod: unknown;
  inspect: Record<string, Inspected & { Name: string }>;
  logs: Record<string, string>;
}

export const ORACLE = join(import.meta.dir, "../fixtures/oracle/behaviour");

/** A placeholder such as `<pod-uid:web-node1>` becomes `pod-uid.web-node1`: a colon would end the path of a bind. */
function readRecorded(path: string): Recorded {
  const text = readFileSync(path, "utf8").replace(
    /<([a-z-]+):([^>]*)>/g,
    (_, kind: string, of: string) => `${kind}.${of.replace(/[^a-zA-Z0-9.-]/g, "-")}`,
  );
  return JSON.parse(text) as Recorded;
}

/** Every pod of the oracle, as `<case>/<pod>`. */
export const CASES = readdirSync(ORACLE).flatMap((name) =>
  readdirSync(join(ORACLE, name))
    .filter((file) => file.endsWith(".json"))
    .map((file) => ({
      name: `${name}/${file.replace(/\.json$/, "")}`,
      recorded: readRecorded(join(ORACLE, name, file)),
    })),
);

/**
 * Where we differ from what was recorded, on purpose (docs/differences.md). Each function removes one difference from
 * both sides, and only that.
 */
const INTENDED_DIFFERENCES: Record<string, (side: Inspected, pod: Pod) => void> = {
  "logs are rotated": ({ HostConfig }) => delete HostConfig.LogConfig,
  "OOM scores go by QoS class; the recording could not have negative ones": ({ HostConfig }) =>
    delete HostConfig.OomScoreAdj,
  "procMount: Unmasked is done instead of being lost on the way": ({ HostConfig }, pod) => {
    if (!pod.spec.containers.some(({ securityContext }) => securityContext?.procMount === "Unmasked")) return;
    delete HostConfig.MaskedPaths;
    delete HostConfig.ReadonlyPaths;
  },
  "nvidia.com/gpu asks the engine for a GPU instead of being ignored": ({ HostConfig }) =>
    delete HostConfig.DeviceRequests,
  "labels of our own": ({ Config }) => {
    const labels = Config.Labels as Json;
    for (const key of Object.keys(labels)) if (key.includes("kubelet-ts.io/")) delete labels[key];
    // The revision's value is ours; that there is one is not.
    if ("annotation.io.kubernetes.container.hash" in labels) labels["annotation.io.kubernetes.container.hash"] = "hash";
  },
};

const isNothing = (value: unknown) =>
  !value || (typeof value === "object" && Object.values(value).every((member) => !member && member !== null));

/** Without members that are null, empty, 0 or false, as the fixtures are. */
export const withoutNothing = (part: Json): Json =>
  Object.fromEntries(Object.entries(part).filter(([, one]) => !isNothing(one)));

/** The engine's own lists, which the kubelet leaves to it for the sandbox. */
const ENGINE_MASKED_PATHS = 10;

/** One side of the comparison without the intended differences. */
export function normalize(side: Inspected, pod: Pod): Inspected {
  for (const remove of Object.values(INTENDED_DIFFERENCES)) remove(side, pod);
  const { Config, HostConfig } = side;
  // The health check of the image keeps its numbers with NONE.
  if (Config.Healthcheck) Config.Healthcheck = { Test: (Config.Healthcheck as Json).Test };
  if ((HostConfig.MaskedPaths as string[] | undefined)?.length === ENGINE_MASKED_PATHS) {
    delete HostConfig.MaskedPaths;
    delete HostConfig.ReadonlyPaths;
  }
  return { Config: withoutNothing(Config), HostConfig: withoutNothing(HostConfig) };
}
