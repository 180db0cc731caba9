import { expect } from "bun:test";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { STOPPABLE, shell, sleeper } from "../../support/manifests.ts";
import { until } from "../../support/until.ts";

if (!process.env.KUBELET_TS_TEST_VM)
  throw new Error("these tests install services on the machine they run on: run them with npm run test:vm");

/** The binary that was built, as a user has downloaded it. */
export const DOWNLOADED = fileURLToPath(new URL("../../../dist/kubelet-ts", import.meta.url));

export const MANIFESTS = "/etc/kubernetes/manifests";

/** Directory of the host that the pods write to. */
export const RECORDS = "/srv/records";

/** Runs a program to its end; stdout and stderr in one text. */
export async function run(...argv: string[]): Promise<{ exitCode: number; output: string }> {
  const child = Bun.spawn(argv, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [out, err, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { exitCode, output: out + err };
}

/** Standard output and error of a program. @throws Error when its exit code is not 0 */
export async function outputOf(...argv: string[]): Promise<string> {
  const { exitCode, output } = await run(...argv);
  if (exitCode !== 0) throw new Error(`${argv.join(" ")}: exit code ${exitCode}: ${output}`);
  return output;
}

/** A property of the service, as systemd shows it. */
export const unitProperty = async (name: string) =>
  (await outputOf("systemctl", "show", "-P", name, "kubelet-ts.service")).trim();

/** Ids of the running containers of this name, in the pods of the service. */
export async function containersOf(container: string): Promise<string[]> {
  const label = `label=io.kubernetes.container.name=${container}`;
  const ids = await outputOf("docker", "ps", "-q", "--no-trunc", "--filter", label);
  return ids.split("\n").filter((id) => id !== "");
}

/** Waits until a pod is Ready or has Succeeded. @throws Error with what holds it back */
export async function waitForPod(name: string, condition: string): Promise<void> {
  await until(`pod ${name} is known`, async () => (await run("kubelet-ts", "get", "pod", name)).exitCode === 0);
  const { exitCode, output } = await run("kubelet-ts", "wait", `pod/${name}`, `--for=${condition}`, "--timeout=180s");
  if (exitCode === 0) return;
  const explained = await run("kubelet-ts", "explain", name);
  const log = await run("journalctl", "--no-pager", "-u", "kubelet-ts", "-n", "30");
  throw new Error(`${output}\n${explained.output}\n${log.output}`);
}

/** A pod of one container of the same name. */
export function writePod(name: string, container: object, directory = MANIFESTS, annotations: object = {}, spec = {}) {
  const manifest = sleeper(name, { name, image: "busybox:1.35", ...container }, spec, { annotations });
  writeFileSync(`${directory}/${name}.yaml`, JSON.stringify(manifest));
}

/** A server, a job that ends, and an application that waits for a database. */
export function writeManifests(): void {
  mkdirSync(RECORDS, { recursive: true });
  const volumeMounts = [{ name: "records", mountPath: "/records" }];
  const spec = { terminationGracePeriodSeconds: 5, volumes: [{ name: "records", hostPath: { path: RECORDS } }] };
  const pod = (
    name: string,
    script: string,
    more: { annotations?: object; container?: object; restartPolicy?: string } = {},
  ) =>
    writePod(name, { ...shell(script), volumeMounts, ...more.container }, MANIFESTS, more.annotations, {
      ...spec,
      restartPolicy: more.restartPolicy,
    });
  pod("web", STOPPABLE);
  pod("once", "echo run >> /records/once", { restartPolicy: "Never" });
  pod("db", `cut -d' ' -f1 /proc/uptime > /records/db-start; sleep 4; touch /tmp/ready; ${STOPPABLE}`, {
    container: { readinessProbe: { exec: { command: ["test", "-e", "/tmp/ready"] }, periodSeconds: 1 } },
  });
  pod("app", `cut -d' ' -f1 /proc/uptime > /records/app-start; ${STOPPABLE}`, {
    annotations: { "kubelet-ts.io/depends-on": "default/db=Ready" },
  });
}

/** The application started after its database was Ready, which takes 4 s from its start; both at this boot. */
export function expectPodsInOrder(): void {
  const seconds = (name: string) => Number(readFileSync(`${RECORDS}/${name}-start`, "utf8"));
  expect(seconds("app") - seconds("db")).toBeGreaterThanOrEqual(4);
  const uptime = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]);
  const bootedAtMs = Date.now() - uptime * 1000;
  expect(statSync(`${RECORDS}/db-start`).mtimeMs).toBeGreaterThan(bootedAtMs);
}
