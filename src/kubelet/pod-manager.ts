import type { Pod } from "../base/api/pod.ts";
import type { DesiredPod, DesiredState } from "../base/model/desired-pod.ts";
import type { PodUID } from "../base/model/identity.ts";

/** The pods this node should run and the objects they refer to. `Kubelet.setDesired` writes it; other subsystems read it. */
export class PodManager {
  #state: DesiredState = { pods: [], configMaps: new Map(), secrets: new Map() };

  get state(): DesiredState {
    return this.#state;
  }

  set(state: DesiredState): void {
    this.#state = state;
  }

  get(uid: PodUID): DesiredPod | undefined {
    return this.#state.pods.find(({ pod }) => pod.metadata.uid === uid);
  }

  pods(): Pod[] {
    return this.#state.pods.map(({ pod }) => pod);
  }
}
