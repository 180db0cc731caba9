/**
 * `bun scripts/page-screenshots.ts [PODS]`: the pictures of docs/page.md, of the compiled binary on a real engine. Needs
 * Chromium and `npm run build`; makes the pictures smaller with pngquant where that is installed. PODS (110) is the number
 * of pods of the full overview.
 */
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import type { Summary } from "../src/base/api/stats-summary.ts";
import { UsageRecorder } from "../src/server/page/usage-history.ts";
import { launchBrowser } from "../test/support/browser.ts";
import { serveEmptyCluster, toKubeconfig } from "../test/support/cluster/empty-cluster.ts";
import { engineSocketPath, TestNode } from "../test/support/test-node.ts";
import { TestProxy } from "../test/support/test-proxy.ts";

const OUT = join(import.meta.dir, "..", "docs", "page");
const PODS = Number(process.argv[2] ?? 110);
/** Spark lines and charts show something after this time. */
const HISTORY_MS = 120_000;
/** A busy machine takes seconds to start a pod. */
const START_MS = 600_000;
/** A picture waits for a calmer machine no longer than this. */
const CALM_MS = 120_000;
const CALM_LOAD = 6;
const COLORS = 200;
/** Longest picture, in pixels: a node takes more than 7000 on a phone. */
const MAX_HEIGHT = 3000;

const pod = (name: string, script: string, more = "", podMore = "") => `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
  labels:
    app: ${name}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: app
      image: busybox:1.35
      command: [sh, -c, '${script}']
${more}${podMore}`;

/** Answers requests, writes a log, and asks for more CPU than its limit now and then. */
const WEB = pod(
  "web",
  'echo ok > /w/index.html; httpd -p 8080 -h /w; (while true; do timeout 7 sh -c "while true; do :; done"; sleep 15; done) 2>/dev/null & i=0; while true; do i=$((i+1)); printf "\\033[32mINFO\\033[0m  GET /order/$i 200\\n"; [ $((i % 7)) = 0 ] && printf "\\033[33mWARN\\033[0m  /order/$i took 812 ms\\n"; sleep 1; done',
  `      resources:
        limits:
          cpu: 50m
          memory: 64Mi
      ports:
        - containerPort: 8080
      readinessProbe:
        periodSeconds: 2
        httpGet:
          port: 8080
      livenessProbe:
        periodSeconds: 5
        httpGet:
          port: 8080
      volumeMounts:
        - name: content
          mountPath: /w
`,
  `    - name: metrics
      image: busybox:1.35
      command: [sh, -c, 'while true; do echo "metrics sent"; sleep 5; done']
  volumes:
    - name: content
      emptyDir:
        sizeLimit: 16Mi
`,
);

const WORKLOADS = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
spec:
  replicas: 2
  selector:
    matchLabels:
      app: shop
  template:
    metadata:
      labels:
        app: shop
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: shop
          image: busybox:1.35
          command: [sleep, "3600"]
---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: backup
spec:
  schedule: 0 3 * * *
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: backup
              image: busybox:1.35
              command: ["true"]
`;

const SUBMITTED = pod("posted", "exec sleep 3600");

/** A day of the node, made up but for its end, which the other charts show: a kubelet that has just started has none. In the form in which it is kept. */
function makeUpDay(): Uint8Array {
  const usage = new UsageRecorder();
  const gibibyte = 2 ** 30;
  let received = 0;
  for (let minutes = 24 * 60; minutes > 12; minutes -= 2) {
    const atMs = Date.now() - minutes * 60_000;
    const time = new Date(atMs).toISOString();
    const hour = (atMs / 3_600_000) % 24;
    const daylight = Math.max(0, Math.sin(((hour - 6) / 12) * Math.PI));
    const backup = hour > 3 && hour < 3.6 ? 1 : 0;
    const noise = Math.random() * 0.15;
    received += 120 * 40_000 * (1 + daylight * 3 + noise);
    const node = {
      nodeName: "",
      startTime: time,
      cpu: { time, usageNanoCores: Math.round((0.2 + daylight * 0.6 + backup * 0.7 + noise) * 1e9) },
      memory: { time, workingSetBytes: Math.round((3 + daylight * 1.5 + backup + noise) * gibibyte) },
      fs: { time, usedBytes: Math.round((36 + (1440 - minutes) / 600) * gibibyte) },
      network: { time, name: "eth0", rxBytes: Math.round(received), txBytes: Math.round(received * 0.4) },
    };
    usage.add({ node, pods: [] } as unknown as Summary, atMs);
  }
  return usage.save();
}

/** @param isWhole the page to its end, at most {@link MAX_HEIGHT}, on a screen of that height: rows off the screen are not painted */
async function shoot(page: Page, name: string, isWhole = false, part?: Locator): Promise<void> {
  const size = page.viewportSize();
  if (isWhole && size) {
    const height = await page.evaluate<number>("document.documentElement.scrollHeight");
    await page.setViewportSize({ ...size, height: Math.min(Math.max(height, size.height), MAX_HEIGHT) });
  }
  await page.mouse.move(0, 0);
  await page.waitForTimeout(700);
  const path = join(OUT, `${name}.png`);
  await (part ?? page).screenshot({ path });
  if (size) await page.setViewportSize(size);
  if (Bun.which("pngquant")) {
    Bun.spawnSync(["pngquant", "--force", "--nofs", "--strip", "--output", path, String(COLORS), path]);
  }
  console.log(`docs/page/${name}.png, ${Math.ceil(statSync(path).size / 1024)} KiB`);
}

/** Waits until this many pods of the node are ready. */
const untilReady = (node: TestNode, count: number) =>
  node.until(
    `${count} ready pods`,
    async () => {
      const pods = await node.pods();
      const ready = pods.filter(({ status }) =>
        status.conditions?.some(({ type, status: isTrue }) => type === "Ready" && isTrue === "True"),
      );
      return ready.length >= count;
    },
    START_MS,
  );

/** The usage of a machine that is busy with something else says nothing: waits for its end, for some minutes. */
async function untilCalm(): Promise<void> {
  const endMs = Date.now() + CALM_MS;
  while ((loadavg()[0] ?? 0) > CALM_LOAD && Date.now() < endMs) await Bun.sleep(5000);
}

async function logIn(page: Page, node: TestNode): Promise<void> {
  const { stdout } = await node.spawn(["page", `--root-dir=${node.rootDir}`]).finished();
  await page.goto(stdout.trim());
}

const podLink = (page: Page, name: string) => page.getByRole("link", { name: new RegExp(`^${name}-`) });

async function openPod(page: Page, name: string): Promise<void> {
  await page.getByRole("link", { name: "Pods", exact: true }).click();
  await podLink(page, name).click();
  await page.locator(".chart canvas").nth(3).waitFor();
}

async function openTab(page: Page, tab: string): Promise<void> {
  await page.getByRole("link", { name: tab, exact: true }).click();
  await page.waitForTimeout(1500);
}

async function openNode(page: Page): Promise<void> {
  await page.getByRole("link", { name: "Node", exact: true }).click();
  await page.getByRole("heading", { name: "Images" }).waitFor();
  await page.locator(".chart canvas").nth(3).waitFor();
}

async function typeInShell(page: Page): Promise<void> {
  await openTab(page, "Shell");
  await page.locator(".xterm-rows", { hasText: "#" }).waitFor();
  await page.keyboard.type("ls / && ps && wget -qO- localhost:8080\n");
  await page.locator(".xterm-rows", { hasText: /httpd/ }).waitFor();
}

async function shootPod(page: Page, node: TestNode): Promise<void> {
  await openPod(page, "importer");
  await page.getByText("Why it is not ready").waitFor();
  await shoot(page, "crash-loop", true);
  await openPod(page, "web");
  await shoot(page, "pod", true);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").waitFor();
  await shoot(page, "question");
  await page.keyboard.press("Escape");
  await openTab(page, "Logs");
  await shoot(page, "logs");
  await page.getByLabel("Container", { exact: true }).selectOption("All containers");
  await page.getByLabel("Times").check();
  await page.locator(".log .line").nth(20).waitFor();
  await shoot(page, "logs-all");
  await typeInShell(page);
  await shoot(page, "shell");
  for (const tab of ["Processes", "Events"]) {
    await openTab(page, tab);
    await shoot(page, tab.toLowerCase());
  }
  const file = join(node.manifestDir, "web.yaml");
  writeFileSync(file, WEB.replace("cpu: 50m", "cpu: 50mm"));
  await openTab(page, "Manifest");
  await page.getByText(/Error, column/).waitFor();
  await shoot(page, "manifest");
  writeFileSync(file, WEB);
  await page.getByText(/Error, column/).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Try an edit" }).click();
  const box = page.getByLabel("Edited manifest");
  await box.fill((await box.inputValue()).replace("containerPort: 8080", "containerPort: 8081"));
  await page.getByRole("button", { name: "What would restart?" }).click();
  await page.locator("pre.banner").waitFor();
  await shoot(page, "edit", true);
}

async function shootApply(page: Page): Promise<void> {
  await page.getByRole("link", { name: "Apply", exact: true }).click();
  const box = page.getByLabel("Manifest");
  await box.fill(SUBMITTED.replace("containers:", "containerz:"));
  await page.getByRole("button", { name: "Check" }).click();
  await page.locator("pre.banner.bad").waitFor();
  await shoot(page, "apply-refused");
  await box.fill(SUBMITTED);
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Apply" }).click();
  await page.getByText("pod/posted created").waitFor();
  await shoot(page, "apply");
}

async function shootPhone(page: Page): Promise<void> {
  await podLink(page, "web").waitFor();
  await shoot(page, "phone");
  await openPod(page, "web");
  await shoot(page, "phone-pod", true);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").waitFor();
  await shoot(page, "phone-question");
  await page.keyboard.press("Escape");
  await openTab(page, "Logs");
  await shoot(page, "phone-logs");
  await typeInShell(page);
  await shoot(page, "phone-shell");
  await openTab(page, "Manifest");
  await shoot(page, "phone-manifest");
  await openNode(page);
  await shoot(page, "phone-node", true);
}

const scratch = new TestNode();
const proxyPath = join(scratch.directory, "d.sock");
const proxy = { now: new TestProxy(engineSocketPath(), proxyPath) };
const node = new TestNode({ socketPath: proxyPath });
const api = serveEmptyCluster(0);
const clusterNode = new TestNode();
const browser = await launchBrowser();
mkdirSync(OUT, { recursive: true });
try {
  mkdirSync(join(node.rootDir, "state"), { recursive: true });
  writeFileSync(join(node.rootDir, "state", "usage-history"), makeUpDay());
  const kubelet = await node.start();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  page.setDefaultTimeout(180_000);
  await logIn(page, node);
  await page.getByText("No pods run on this node").waitFor();
  await page.getByText(/of \d+ cores/).waitFor();
  await shoot(page, "empty");
  node.writeManifest("web.yaml", WEB);
  node.writeManifest("crash.yaml", pod("importer", "echo connecting to db:5432; echo no such host; exit 1"));
  writeFileSync(join(node.manifestDir, "cache.yaml"), pod("cache", "true").replace("containers:", "containerz:"));
  node.writeManifest("shop.yaml", WORKLOADS);
  await untilReady(node, 3);
  await page.getByRole("row", { name: /CrashLoopBackOff/ }).waitFor();
  await Promise.all([page.waitForTimeout(HISTORY_MS), untilCalm()]);
  await shoot(page, "overview", true);
  await page.emulateMedia({ colorScheme: "dark" });
  await shoot(page, "dark", true);
  await page.emulateMedia({ colorScheme: "light" });
  await shootPod(page, node);
  await openNode(page);
  await shoot(page, "node", true);
  await page.getByRole("button", { name: "24h" }).click();
  await shoot(page, "day", false, page.getByRole("region", { name: "Charts" }));
  const phone = await browser.newContext({
    viewport: { width: 360, height: 780 },
    colorScheme: "dark",
    storageState: await context.storageState(),
  });
  const small = await phone.newPage();
  await small.goto(`http://127.0.0.1:${node.cadvisorPort}/`);
  await shootPhone(small);
  await phone.close();
  await page.getByRole("link", { name: "Pods", exact: true }).click();
  proxy.now.close();
  await page.getByText(/The kubelet reports since/).waitFor();
  await shoot(page, "engine-away");
  proxy.now = new TestProxy(engineSocketPath(), proxyPath);
  await page.getByText(/The kubelet reports since/).waitFor({ state: "detached" });
  await shootApply(page);

  const kubeconfig = join(clusterNode.directory, "node.conf");
  writeFileSync(kubeconfig, toKubeconfig(`http://127.0.0.1:${api.port}`));
  const clusterKubelet = await clusterNode.start([`--kubeconfig=${kubeconfig}`]);
  const other = await context.newPage();
  await other.goto(`http://127.0.0.1:${clusterNode.cadvisorPort}/#/node`);
  await other.getByText("It answers: pods come from there").waitFor();
  await api.stop(true);
  await other.getByText("API server away").waitFor();
  await other.locator(".chart canvas").nth(3).waitFor();
  await shoot(other, "cluster");
  await other.close();
  await clusterKubelet.stop();

  const more = PODS - (await node.pods()).length;
  for (let index = 1; index <= more; index++) {
    node.writeManifest(`worker-${index}.yaml`, pod(`worker-${index}`, "exec sleep 3600"));
  }
  await page.getByRole("link", { name: "Pods", exact: true }).click();
  await untilReady(node, PODS - 1);
  await Promise.all([page.waitForTimeout(HISTORY_MS), untilCalm()]);
  await shoot(page, "full");
  await kubelet.stop();
  await page.getByText("The kubelet does not answer").waitFor();
  await shoot(page, "disconnected");
} finally {
  await browser.close();
  await api.stop(true);
  for (const one of [clusterNode, node]) await one.cleanUp();
  proxy.now.close();
  for (const one of [clusterNode, node, scratch]) rmSync(one.directory, { recursive: true, force: true });
}
