/**
 * `npm run test:cluster [-- FILE…]`: kubelet-ts as a node of a real Kubernetes 1.20.2 on a real engine. Builds the control
 * plane once (see kubernetes-build.mjs), then runs test/real-cluster/. The last line is `N passed, N failed`.
 */
import { aptInstall, isAptMachine } from "./apt.mjs";
import { ensureKubernetes } from "./kubernetes-build.mjs";
import { findProgram } from "./run-command.mjs";
import { runOnEngine } from "./run-on-engine.mjs";
import { CannotContinue, step } from "./say.mjs";
import { TestRun } from "./test-run.mjs";
import { ensureUnpacked } from "./test-tools.mjs";
import { buildBinary } from "./workspace.mjs";

const RUN_LIMIT_MS = 30 * 60_000;

/** Files that run at the same time, each with a control plane of its own. */
const AT_A_TIME = 3;

/** Programs the tests run, and Debian's packages that have them. */
const INSTALLED = { iptables: "iptables", openssl: "openssl", ip: "iproute2" };

const PLUGIN_PACKAGE = "containernetworking-plugins";

const run = new TestRun();

/** @returns {Promise<Record<string, string>>} the environment with the paths of the programs */
async function setUpCluster() {
  if (!isAptMachine() || process.getuid?.() !== 0)
    throw new CannotContinue("The tests of a real cluster need root on Debian or Ubuntu.");
  const missing = Object.entries(INSTALLED).filter(([program]) => !findProgram(program));
  const packages = missing.map(([, name]) => name);
  if (packages.length > 0) {
    step("tools", `installing what tests use (apt-get): ${packages.join(", ")}`);
    await aptInstall(packages);
  }
  // Only unpacked: the package of etcd starts a server when it is installed.
  const unpacked = await ensureUnpacked(["etcd-server", PLUGIN_PACKAGE], ["usr/bin/etcd", "usr/lib/cni/bridge"]);
  const kubernetes = await ensureKubernetes();
  await buildBinary();
  return {
    KUBELET_TS_KUBERNETES: kubernetes,
    KUBELET_TS_ETCD: `${unpacked}/usr/bin/etcd`,
    KUBELET_TS_CNI: `${unpacked}/usr/lib/cni`,
    CI: "1",
  };
}

/** The longest file starts first, as in test.mjs. */
const TIMINGS = "--timings=test/real-cluster/timings.json";

await runOnEngine(run, async () => {
  const env = await setUpCluster();
  run.stopIfInterrupted();
  const files = process.argv.slice(2);
  await run.bunTest(
    "Tests of a real cluster",
    ["--no-orphans", `--parallel=${AT_A_TIME}`, TIMINGS, ...(files.length > 0 ? files : ["test/real-cluster/"])],
    { limitMs: RUN_LIMIT_MS, env },
  );
});
