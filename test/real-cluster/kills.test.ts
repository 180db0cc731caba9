import { expect, test } from "bun:test";
import { LABEL } from "../../src/docker/labels.ts";
import { aPodSpec } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { CniNetwork } from "../support/cluster/cni-network.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";
import { workload } from "../support/manifests.ts";
import { seededRandom } from "../support/seeded-random.ts";

/** Kills of kubelet-ts, each at a random moment while pods are created, replaced and deleted; simulated nodes see more of them. */
const KILLS = 8;
/** A slow machine sees fewer kills. */
const LIMIT_MS = 25_000;
/** Shortest upper bound of the time between a change and the kill; a machine on which pods take longer has a larger one. */
const SHORTEST_SPAN_MS = 2_500;
const REPLICAS = 4;

const SEED = Number(process.env.KUBELET_TS_TEST_SEED ?? Date.now() % 1_000_000);

describeCluster("kill -9 of kubelet-ts at any moment", () => {
  let network: CniNetwork;
  /** Containers that ran, by UID of the pod and name of the container. */
  const ran = new Map<string, Set<string>>();
  const { kubectl, node } = useCluster(
    async ({ node }) => {
      network = new CniNetwork(node.directory);
      network.configure();
    },
    { tearDown: () => network?.remove() },
  );

  /** Records what runs. @returns containers of a pod that run in more than one copy */
  async function runningTwice(): Promise<string[]> {
    const names = (await node.running()).map(({ Id, Labels }) => {
      const name = `${Labels[LABEL.podUid]}/${Labels[LABEL.containerName]}`;
      ran.set(name, (ran.get(name) ?? new Set()).add(Id));
      return name;
    });
    return names.filter((name, index) => names.indexOf(name) !== index);
  }

  test("nothing runs twice, nothing restarts, nothing stays Terminating", async () => {
    console.log(`kills at random moments: KUBELET_TS_TEST_SEED=${SEED}`);
    const random = seededRandom(SEED);
    await kubectl.apply(workload("Deployment", "web", { replicas: REPLICAS }, aPodSpec()));
    const changes = [
      (round: number) => `set env deployment/web ROUND=${round}`,
      () => "delete pods -l app=web --wait=false",
      () => "scale deployment/web --replicas=1",
      () => `scale deployment/web --replicas=${REPLICAS}`,
      // Without a change: between the steps of former ones.
      () => "get pods",
    ];
    let kubelet = await node.join({ flags: network.flags });
    const joinedAtMs = performance.now();
    await kubectl.readyPods("web", REPLICAS);
    const startedAtMs = performance.now();
    const spanMs = Math.max(SHORTEST_SPAN_MS, 1.5 * (startedAtMs - joinedAtMs));
    let kills = 0;
    for (; kills < KILLS && performance.now() - startedAtMs < LIMIT_MS; kills++) {
      await kubectl.words(changes[Math.floor(random() * changes.length)]!(kills));
      await Bun.sleep(random() * spanMs);
      await kubelet.kill();
      expect(await runningTwice()).toEqual([]);
      kubelet = await node.join({ flags: network.flags });
      expect(await runningTwice()).toEqual([]);
    }
    console.log(
      `${kills} kills in ${Math.round((performance.now() - startedAtMs) / 1000)} s, each within ${(spanMs / 1000).toFixed(1)} s of a change; ${ran.size} containers ran`,
    );
    await kubectl.words(`scale deployment/web --replicas=${REPLICAS}`);
    const pods = await kubectl.readyPods("web", REPLICAS, 180_000);
    expect(await runningTwice()).toEqual([]);
    expect([...ran].filter(([, ids]) => ids.size > 1)).toEqual([]);
    expect(pods.map(({ status }) => status.containerStatuses[0].restartCount)).toEqual(Array(REPLICAS).fill(0));
    await kubectl.until(
      "only the containers of those pods",
      async () => (await node.listAll()).length === 2 * REPLICAS,
    );
    await kubectl.words("delete deployment web");
    await kubectl.noneOf("pods", "web");
    expect(await node.listAll()).toEqual([]);
    // Every address was given back, also those of pods whose set-up or removal was interrupted.
    expect({ addresses: network.addresses(), records: network.records() }).toEqual({ addresses: [], records: [] });
  });
});
