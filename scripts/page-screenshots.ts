/**
 * `bun scripts/page-screenshots.ts [PODS]`: the pictures of docs/page.md, of the compiled binary on a real engine. Needs
 * Chromium, `npm run build` and `npm run images -- --test`. PODS (110) is the number of pods of the full overview.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { launchBrowser } from "../test/support/browser.ts";
import { TestNode } from "../test/support/test-node.ts";

const OUT = join(import.meta.dir, "..", "docs", "page");
const PODS = Number(process.argv[2] ?? 110);

const pod = (name: string, script: string, more: object = {}) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { app: name } },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: "app", image: "busybox:test", command: ["sh", "-c", script], ...more }],
    },
  });

const WEB = pod(
  "web",
  "mkdir /w; echo ok > /w/index.html; (while true; do echo GET / 200; sleep 1; done)& exec httpd -f -p 8080 -h /w",
  {
    resources: { limits: { memory: "64Mi", cpu: "250m" } },
    readinessProbe: { httpGet: { port: 8080 }, periodSeconds: 2 },
    livenessProbe: { httpGet: { port: 8080 }, periodSeconds: 5 },
  },
);

async function shoot(page: Page, name: string, fullPage = false): Promise<void> {
  await page.waitForTimeout(700);
  await page.screenshot({ path: join(OUT, `${name}.png`), fullPage });
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
  node.writeManifest("web.json", WEB);
  node.writeManifest("crash.json", pod("importer", "echo connecting to db:5432; echo no such host; exit 1"));
  writeFileSync(join(node.manifestDir, "bad.json"), pod("bad", "true").replace('"containers"', '"containerz"'));
  await page.getByRole("row", { name: /^web-.*Running/ }).waitFor();
  await page.getByRole("row", { name: /CrashLoopBackOff/ }).waitFor();
  await page.waitForTimeout(45_000);
  await shoot(page, "overview");
  await page.getByRole("link", { name: /^importer-/ }).click();
  await page.getByText("Why it is not ready").waitFor();
  await shoot(page, "crash-loop");
  await page.goto(`http://127.0.0.1:${node.cadvisorPort}/#/`);
  await page.getByRole("link", { name: /^web-/ }).click();
  await page.locator(".chart").first().waitFor();
  await shoot(page, "pod", true);
  for (const tab of ["Logs", "Shell", "Events", "Manifest"]) {
    await page.getByRole("link", { name: tab, exact: true }).click();
    await page.waitForTimeout(1500);
    await shoot(page, tab.toLowerCase());
  }
  await page.getByRole("link", { name: "Node", exact: true }).click();
  await page.getByRole("heading", { name: "Images" }).waitFor();
  await shoot(page, "node", true);
  const phone = await browser.newContext({ viewport: { width: 360, height: 780 }, colorScheme: "dark" });
  const small = await phone.newPage();
  await small.goto(`http://127.0.0.1:${node.cadvisorPort}/`);
  await small.getByRole("row", { name: /^web-/ }).waitFor();
  await shoot(small, "phone");
  await small.getByRole("link", { name: /^web-/ }).click();
  await small.locator(".chart").first().waitFor();
  await shoot(small, "phone-pod");
  for (let index = 2; index < PODS; index++) {
    node.writeManifest(`p${index}.json`, pod(`worker-${index}`, "exec sleep 3600"));
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
