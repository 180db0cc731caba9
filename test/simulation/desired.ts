import type { SeededRandom } from "./seeded-random.ts";

export interface WantedContainer {
  name: string;
  /** A program of the engine model. */
  program: readonly string[];
  image: string;
  /** Counts the edits that name this container. */
  version: number;
  hasLiveness: boolean;
}

/** The pod that one manifest file asks for, or a Deployment of such pods. */
export interface WantedPod {
  app: string;
  replicas: number | undefined;
  restartPolicy: "Always" | "OnFailure" | "Never";
  graceSeconds: number;
  init: readonly WantedContainer[];
  containers: readonly WantedContainer[];
  /** Counts the edits that concern no container. */
  note: number;
  /** When a person changed it last. */
  changedMs: number;
}

const LASTING = [["run"], ["run"], ["run"], ["slow", "3"], ["deaf"]] as const;

/** A new pod of some kind. */
export function makePod(app: string, random: SeededRandom, nowMs: number): WantedPod {
  const endsByItself = random.chance(0.15);
  const isCrashing = !endsByItself && random.chance(0.1);
  const container = (name: string): WantedContainer => ({
    name,
    program: endsByItself
      ? ["exit", String(random.whole(1, 600)), "0"]
      : isCrashing
        ? ["exit", String(random.whole(3_000, 90_000)), "1"]
        : random.pick(LASTING),
    image: `app${random.whole(1, 4)}:1`,
    version: 1,
    hasLiveness: !endsByItself && random.chance(0.3),
  });
  const init = Array.from({ length: random.chance(0.3) ? random.whole(1, 2) : 0 }, (_, index) => ({
    ...container(`init${index}`),
    program: ["exit", String(random.whole(0, 5)), "0"],
    hasLiveness: false,
  }));
  return {
    app,
    replicas: !endsByItself && random.chance(0.15) ? random.whole(1, 3) : undefined,
    restartPolicy: endsByItself ? random.pick(["Never", "OnFailure"] as const) : "Always",
    graceSeconds: random.pick([1, 5, 30]),
    init,
    containers: Array.from({ length: random.pick([1, 1, 2, 3]) }, (_, index) => container(`app${index}`)),
    note: 1,
    changedMs: nowMs,
  };
}

/** The text of the file. */
export function toManifest(pod: WantedPod): string {
  const container = ({ name, program, image, version, hasLiveness }: WantedContainer) => ({
    name,
    image,
    command: program,
    env: [
      { name: "APP", value: pod.app },
      { name: "VERSION", value: String(version) },
    ],
    ...(hasLiveness && {
      livenessProbe: { exec: { command: ["check"] }, periodSeconds: 600, failureThreshold: 2 },
    }),
  });
  const spec = {
    restartPolicy: pod.replicas === undefined ? pod.restartPolicy : "Always",
    terminationGracePeriodSeconds: pod.graceSeconds,
    ...(pod.init.length > 0 && { initContainers: pod.init.map(container) }),
    containers: pod.containers.map(container),
  };
  const labels = { app: pod.app };
  const metadata = { name: pod.app, labels, annotations: { note: String(pod.note) } };
  const object =
    pod.replicas === undefined
      ? { apiVersion: "v1", kind: "Pod", metadata, spec }
      : {
          apiVersion: "apps/v1",
          kind: "Deployment",
          metadata,
          spec: { replicas: pod.replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
        };
  return `${JSON.stringify(object, null, 2)}\n`;
}

/** Whether a container of the pod runs on without end. */
export const isLasting = ({ program }: WantedContainer) => program[0] !== "exit";
