import type { Pod } from "../base/api/pod.ts";
import type { DesiredPod, DesiredState } from "../base/model/desired-pod.ts";
import type { PodUID } from "../base/model/identity.ts";

/** The pods this node should run and the objects they refer to. `Kubelet.setDesired` writes it; other subsystems read it. */
export class PodManager {
  #state: DesiredState = { pods: [], configMaps: new Map(), secrets: new Map() };
  #pods: readonly Pod[] | undefined;

  get state(): DesiredState {
    return this.#state;
  }

  set(state: DesiredState): void {
    this.#state = state;
    this.#pods = undefined;
  }

  get(uid: PodUID): DesiredPod | undefined {
    return this.#state.pods.find(({ pod }) => pod.metadata.uid === uid);
  }

  /** The same array until the next {@link set}. */
  pods(): readonly Pod[] {
    this.#pods ??= this.#state.pods.map(({ pod }) => pod);
    return this.#pods;
  }
}
