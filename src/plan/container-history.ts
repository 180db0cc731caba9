import type { ContainerSnapshot, PodSnapshot } from "../base/model/pod-snapshot.ts";

/** Newest first. The counts decide: times of creation are by a wall clock that may have been set back in between. */
export function byNewest(a: ContainerSnapshot, b: ContainerSnapshot): number {
  return b.restartCount - a.restartCount || b.createdAt.getTime() - a.createdAt.getTime();
}

/** Every container of that name the engine still has, newest first. */
export function attemptsOf(snapshot: PodSnapshot, name: string): ContainerSnapshot[] {
  return snapshot.containers.filter((container) => container.name === name).sort(byNewest);
}

/** Alive as far as the engine knows: running (also paused). */
export const isRunning = (container: ContainerSnapshot) => container.state === "running";

/** Ended, or its start failed: Docker leaves such a container in state `created` with an exit code. */
export function isTerminated(container: ContainerSnapshot): boolean {
  return container.state === "exited" || (container.state === "created" && container.exitCode !== 0);
}
