import type { Pod } from "../base/api/pod.ts";
import type { DesiredPod, DesiredState } from "../base/model/desired-state.ts";
import type { PodUID } from "../base/model/pod.ts";

/** The pods this node should run and the objects they refer to. `Kubelet.setDesired` writes `state`; other subsystems read it. */
export class PodManager {
  state: DesiredState = { pods: [], configMaps: new Map(), secrets: new Map() };

  get(uid: PodUID): DesiredPod | undefined {
    return this.state.pods.find(({ pod }) => pod.metadata.uid === uid);
  }

  pods(): Pod[] {
    return this.state.pods.map(({ pod }) => pod);
  }
}
