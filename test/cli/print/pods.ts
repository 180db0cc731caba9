import type { Container, ContainerState, ContainerStatus, Pod, PodStatus } from "../../../src/base/api/pod.ts";
import { aContainer, aPod } from "../../support/builders.ts";

/** The current time of these tests. */
export const NOW = new Date("2026-11-21T08:30:00Z");

/** The time `seconds` before {@link NOW}. */
export const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1000).toISOString().replace(".000Z", "Z");

export const running = { running: { startedAt: ago(60) } };
export const waiting = (reason?: string) => ({ waiting: reason === undefined ? {} : { reason } });
export const ended = (reason: string, exitCode = 0, more: object = {}) => ({
  terminated: { exitCode, ...(reason && { reason }), startedAt: ago(60), finishedAt: ago(30), ...more },
});

/** Status of one container; ready when it runs, by default. */
export function has(name: string, state: ContainerState, over: Partial<ContainerStatus> = {}): ContainerStatus {
  return {
    name,
    state,
    lastState: {},
    ready: state.running !== undefined,
    restartCount: 0,
    image: "busybox:test",
    imageID: "docker://sha256:busybox",
    containerID: `docker://${name}-0`,
    ...over,
  };
}

export interface ShownPod {
  name?: string;
  namespace?: string;
  spec?: Partial<Pod["spec"]>;
  metadata?: Partial<Pod["metadata"]>;
  status?: Partial<PodStatus>;
  /** Statuses of init containers; each is in the spec too. `side…` are sidecars. */
  init?: ContainerStatus[];
  /** Statuses of the main containers; each is in the spec too. */
  mains?: ContainerStatus[];
  initialized?: boolean;
  ready?: boolean;
}

/** A pod as `/pods` shows it. */
export function shown(it: ShownPod = {}): Pod {
  const { init = [], mains = [has("app", running)], initialized = init.length === 0, ready = false } = it;
  const containers = mains.map(({ name }) => aContainer({ name }));
  const initContainers = init.map(
    ({ name }): Container => ({
      ...aContainer({ name }),
      ...(name.startsWith("side") && { restartPolicy: "Always" as const }),
    }),
  );
  const condition = (type: string, is: boolean) => ({ type, status: is ? ("True" as const) : ("False" as const) });
  const { name = "web-node1", namespace = "default" } = it;
  return {
    ...aPod(
      { containers, ...(initContainers.length > 0 && { initContainers }), ...it.spec },
      { name, namespace, uid: `uid-${namespace}-${name}`, ...it.metadata },
    ),
    status: {
      phase: "Running",
      startTime: ago(332),
      podIP: "172.17.0.2",
      podIPs: [{ ip: "172.17.0.2" }],
      hostIP: "192.0.2.7",
      conditions: [condition("Initialized", initialized), condition("Ready", ready)],
      ...(init.length > 0 && { initContainerStatuses: init }),
      ...(mains.length > 0 && { containerStatuses: mains }),
      ...it.status,
    },
  };
}
