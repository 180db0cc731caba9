/**
 * `npm run demo`           a pod on this machine, from nothing
 * `npm run demo -- --down` removes it again
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ensureEngine, ownEngineRuns, stopOwnEngine } from "./engine.mjs";
import { askEngine, callEngine, parseEndpoint } from "./engine-api.mjs";
import { EXAMPLE_IMAGES } from "./image-recipes.mjs";
import { ensureImages } from "./images.mjs";
import { listContainers, ownershipLabels, removeContainers } from "./owned-containers.mjs";
import { runCommand } from "./run-command.mjs";
import { bold, CannotContinue, dim, heading, runMain, step } from "./say.mjs";
import { BINARY, buildBinary, ensurePackages, ROOT } from "./workspace.mjs";

const NODE_NAME = "demo";
// The same for every clone of the project: the demo is one per machine, and any clone can remove it.
const ROOT_DIR =
  process.getuid?.() === 0 ? "/var/lib/kubelet-ts-demo" : join(homedir(), ".local", "share", "kubelet-ts-demo");
const LABELS = ownershipLabels(NODE_NAME, ROOT_DIR);
const MANIFEST = join("examples", "nginx-log.yaml");

const isSandbox = (container) => container.Labels["io.kubernetes.docker.type"] === "podsandbox";
const isNamed = (name) => (container) => container.Labels["io.kubernetes.container.name"] === name;

/** The frames of a `logs` answer, as text. Each has a header of 8 bytes: stream, three zeros, length. */
function textOfFrames(bytes) {
  let text = "";
  for (let at = 0; at + 8 <= bytes.length; ) {
    const length = bytes.readUInt32BE(at + 4);
    text += bytes.toString("utf8", at + 8, at + 8 + length);
    at += 8 + length;
  }
  return text;
}

async function readLog(endpoint, id) {
  const { bytes } = await callEngine(endpoint, "GET", `/containers/${id}/logs?stdout=1&tail=50`);
  return textOfFrames(bytes);
}

async function until(what, limitMs, attempt) {
  const end = performance.now() + limitMs;
  for (;;) {
    const result = await attempt();
    if (result !== undefined) return result;
    if (performance.now() > end) throw new CannotContinue(`Waited ${limitMs / 1000} s for ${what}.`);
    await sleep(100);
  }
}

async function fetchPage(url, userAgent) {
  try {
    const response = await fetch(url, {
      headers: { "User-Agent": userAgent },
      signal: AbortSignal.timeout(2_000),
    });
    return response.ok ? await response.text() : undefined;
  } catch {
    return undefined; // Not listening yet.
  }
}

async function up() {
  heading("kubelet-ts: a pod on this machine, without a cluster");
  const building = ensurePackages({ build: true }).then(buildBinary);
  // Reported when it is awaited.
  building.catch(() => {});
  const { endpoint } = await ensureEngine();
  const manifest = readFileSync(join(ROOT, MANIFEST), "utf8");
  await ensureImages(
    endpoint,
    EXAMPLE_IMAGES.filter(({ name }) => manifest.includes(name)),
  );
  await building;

  mkdirSync(ROOT_DIR, { recursive: true });
  const args = ["--runonce", "--hostname-override", NODE_NAME, "--root-dir", ROOT_DIR, MANIFEST];
  heading(`$ dist/kubelet-ts ${args.join(" ")}`);
  const { code } = await runCommand(BINARY, args, { cwd: ROOT, show: true });
  if (code !== 0) throw new CannotContinue(`dist/kubelet-ts ended with exit code ${code}.`, ["Its output is above."]);

  const containers = await listContainers(endpoint, LABELS);
  const sandbox = containers.find((container) => isSandbox(container) && container.State === "running");
  const reader = containers.find(isNamed("log-reader"));
  if (!sandbox || !reader) throw new CannotContinue("The pod's containers no longer exist.");
  const { NetworkSettings } = await askEngine(endpoint, "GET", `/containers/${sandbox.Id}/json`);
  const url = `http://${Object.values(NetworkSettings.Networks)[0]?.IPAddress}/`;
  const userAgent = `kubelet-ts-demo/${Date.now()}`;

  heading(`A page from the pod, ${url}`);
  const page = await until(`an answer from ${url}`, 20_000, () => fetchPage(url, userAgent));
  console.log(`  ${/<h1>(.*?)<\/h1>/.exec(page)?.[1] ?? page.split("\n")[0]}`);

  heading("The log of the second container, which reads the shared volume");
  const line = await until("the line in the log", 20_000, async () =>
    (await readLog(endpoint, reader.Id)).split("\n").find((candidate) => candidate.includes(userAgent)),
  );
  console.log(`  ${line}`);

  console.log(`
It stays: ${bold("docker ps")} shows three containers, the two and the pause that holds the pod's network.
${dim("Run it once more and nothing changes. Remove it all with:")}  ${bold("npm run demo -- --down")}
`);
}

async function down() {
  heading("kubelet-ts: removing the demo");
  try {
    // Volumes, cgroups and log links go with the pod; without the binary only its containers can be removed.
    if (existsSync(BINARY) && existsSync(ROOT_DIR)) {
      await runCommand(BINARY, ["down", "--all", "--now", "--root-dir", ROOT_DIR], { cwd: ROOT, show: true });
    }
    const removed = await removeContainers(parseEndpoint(), LABELS);
    step("pod", removed === 0 ? "no containers left" : `removed ${removed} containers`);
  } catch (error) {
    if (error.code !== "ENOENT" && error.code !== "ECONNREFUSED") throw error;
    step("pod", "no Docker engine answers, so no container of the demo runs");
  }
  const hadFiles = existsSync(ROOT_DIR);
  rmSync(ROOT_DIR, { recursive: true, force: true });
  step("files", hadFiles ? `removed ${ROOT_DIR}` : `${ROOT_DIR} does not exist`);
  await stopEngineUnlessUsed();
  console.log("");
}

/** The dockerd that was started here, if it was: others may have started containers on it since. */
async function stopEngineUnlessUsed() {
  if (!ownEngineRuns()) return;
  // Not the engine of DOCKER_HOST.
  const others = await askEngine(parseEndpoint(""), "GET", "/containers/json");
  if (others.length > 0) {
    step("engine", `${others.length} other containers run on the dockerd that was started here, so it stays;`);
    step("", "stop it with: npm run engine down");
  } else if (await stopOwnEngine()) {
    step("engine", "stopped the dockerd that was started here");
  }
}

await runMain(async () => {
  const args = process.argv.slice(2);
  const unknown = args.find((arg) => arg !== "--down");
  if (unknown !== undefined) throw new CannotContinue(`Unknown argument "${unknown}".`, ["Known: --down"]);
  await (args.includes("--down") ? down() : up());
});
