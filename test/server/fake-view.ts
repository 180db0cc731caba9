import type { CoreEvent } from "../../src/base/api/event.ts";
import type { Pod } from "../../src/base/api/pod.ts";
import type { HealthCheck } from "../../src/base/model/health-check.ts";
import type { KubeletView } from "../../src/server/view.ts";
import type { PodFacts } from "../../src/stats/pod-facts.ts";

/** A view whose members are plain data; `show` changes pods and takes a new revision. */
export class FakeView implements KubeletView {
  #pods: readonly Pod[] = [];
  #revision = 1;
  /** How often the list of pods was taken. */
  podsCalls = 0;
  facts: readonly PodFacts[] = [];
  checks: HealthCheck[] = ["ping", "log", "syncloop"].map((name) => ({ name, ok: true, message: "" }));
  shownConfig: Record<string, unknown> = { readOnlyPort: 10255 };

  show(...pods: Pod[]): void {
    this.#pods = pods;
    this.#revision++;
  }

  nodeName = () => "node1";
  podsRevision = () => this.#revision;
  pods = () => {
    this.podsCalls++;
    return this.#pods;
  };
  happened: CoreEvent[] = [];
  events = () => ({ revision: this.happened.length, items: this.happened });
  podFacts = () => this.facts;
  healthChecks = () => this.checks;
  config = () => this.shownConfig;
}
