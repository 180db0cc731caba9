/**
 * `bun scripts/page-screenshots.ts [PODS]`: the pictures of docs/page.md, of the compiled binary on a real engine. Needs
 * Chromium and `npm run build`. PODS (110) is the number of pods of the full overview.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { launchBrowser } from "../test/support/browser.ts";
import { TestNode } from "../test/support/test-node.ts";

const OUT = join(import.meta.dir, "..", "docs", "page");
const PODS = Number(process.argv[2] ?? 110);

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

const LIMITS = `      resources:
        limits:
          cpu: 50m
          memory: 64Mi
`;

const WEB = pod(
  "web",
  'echo ok > /w/index.html; (while true; do echo "GET / 200"; sleep 1; done)& (while true; do :; done)& exec httpd -f -p 8080 -h /w',
  `${LIMITS}      ports:
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
  `  volumes:
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

/** @param isWhole the page to its end, on a screen of that height: rows off the screen are not painted */
async function shoot(page: Page, name: string, isWhole = false): Promise<void> {
  const size = page.viewportSize();
  if (isWhole && size) {
    const height = await page.evaluate<number>("document.documentElement.scrollHeight");
    await page.setViewportSize({ ...size, height: Math.max(height, size.height) });
  }
  await page.waitForTimeout(700);
  await page.screenshot({ path: join(OUT, `${name}.png`) });
  if (size) await page.setViewportSize(size);
  console.log(`docs/page/${name}.png`);
}

mkdirSync(OUT, { recursive: true });
const node = new TestNode();
const browser = await launchBrowser();
try {
  const kubelet = await node.start();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  page.setDefaultTimeout(180_000);
  const { stdout } = await node.spawn(["page", `--root-dir=${node.rootDir}`]).finished();
  await page.goto(stdout.trim());
  await page.getByText("No pods run on this node").waitFor();
  await shoot(page, "empty");
  node.writeManifest("web.yaml", WEB);
  node.writeManifest("crash.yaml", pod("importer", "echo connecting to db:5432; echo no such host; exit 1"));
  writeFileSync(join(node.manifestDir, "cache.yaml"), pod("cache", "true").replace("containers:", "containerz:"));
  node.writeManifest("shop.yaml", WORKLOADS);
  await page.getByRole("row", { name: /^web-.*Running/ }).waitFor();
  await page.getByRole("row", { name: /CrashLoopBackOff/ }).waitFor();
  await page.waitForTimeout(45_000);
  await shoot(page, "overview", true);
  await page.getByRole("link", { name: /^importer-/ }).click();
  await page.getByText("Why it is not ready").waitFor();
  await shoot(page, "crash-loop");
  await page.goto(`http://127.0.0.1:${node.cadvisorPort}/#/`);
  await page.getByRole("link", { name: /^web-/ }).click();
  await page.locator(".chart").first().waitFor();
  await shoot(page, "pod", true);
  for (const tab of ["Logs", "Shell", "Processes", "Events"]) {
    await page.getByRole("link", { name: tab, exact: true }).click();
    await page.waitForTimeout(1500);
    await shoot(page, tab.toLowerCase());
  }
  writeFileSync(join(node.manifestDir, "web.yaml"), WEB.replace("cpu: 50m", "cpu: 50mm"));
  await page.getByRole("link", { name: "Manifest", exact: true }).click();
  await page.getByText(/Error, column/).waitFor();
  await shoot(page, "manifest");
  writeFileSync(join(node.manifestDir, "web.yaml"), WEB);
  await page.getByRole("link", { name: "Node", exact: true }).click();
  await page.getByRole("heading", { name: "Images" }).waitFor();
  await shoot(page, "node");
  const phone = await browser.newContext({ viewport: { width: 360, height: 780 }, colorScheme: "dark" });
  const small = await phone.newPage();
  await small.goto(`http://127.0.0.1:${node.cadvisorPort}/`);
  await small.getByRole("row", { name: /^web-/ }).waitFor();
  await shoot(small, "phone");
  await small.getByRole("link", { name: /^web-/ }).click();
  await small.locator(".chart").first().waitFor();
  await shoot(small, "phone-pod");
  for (let index = 2; index < PODS; index++) {
    node.writeManifest(`worker-${index}.yaml`, pod(`worker-${index}`, "exec sleep 3600"));
  }
  await page.goto(`http://127.0.0.1:${node.cadvisorPort}/#/`);
  await page.getByRole("row", { name: new RegExp(`^worker-${PODS - 1}-.*Running`) }).waitFor();
  await page.waitForTimeout(15_000);
  await shoot(page, "full");
  await kubelet.stop();
  await page.getByText("The kubelet does not answer").waitFor();
  await shoot(page, "disconnected");
} finally {
  await browser.close();
  await node.cleanUp();
  rmSync(node.directory, { recursive: true, force: true });
}
