import { expect, test } from "bun:test";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../../src/base/model/clock.ts";
import {
  CertificateFile,
  CertificateManager,
  type CertificateUsage,
  computeRotation,
  isValidAt,
  needsBootstrap,
  readSigningState,
  writeKubeconfig,
} from "../../../src/cluster/certificates/certificate-manager.ts";
import { readKubeconfig } from "../../../src/cluster/client/credentials.ts";
import { toKubeconfig } from "../../support/cluster/empty-cluster.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";

const scratch = () => mkdtempSync(join(tmpdir(), "certificates-"));
let slept: number[] = [];
const clock: Clock = {
  now: () => new Date("2026-11-22T10:00:00Z"),
  monotonicMs: () => 0,
  sleep: async (ms) => void slept.push(ms),
  schedule: () => () => {},
};

/** A manager whose requests are answered with these statuses, one after the other. */
function aManager(certDir: string, statuses: object[], usage: CertificateUsage = "client") {
  const bodies: unknown[] = [];
  const subjects: unknown[] = [];
  let stored = 0;
  const manager = new CertificateManager({
    client: {
      request: async <T>({ method, body }: { method?: string; body?: unknown }) => {
        if (method === "POST") bodies.push(body);
        const status = method === "POST" ? {} : (statuses.shift() ?? {});
        return { metadata: { name: "csr-1" }, status } as T;
      },
    },
    clock,
    logger: new RecordingLogger(),
    file: new CertificateFile(certDir, usage),
    nodeName: "n",
    node: { addresses: async () => [{ address: "192.0.2.1" }] },
    makeSigningRequest: async (subject) => {
      subjects.push(subject);
      return { request: "REQUEST", key: "KEY\n" };
    },
    onStored: () => stored++,
  });
  return { manager, bodies, subjects, stored: () => stored };
}

const issued = { certificate: Buffer.from("CERTIFICATE\n").toString("base64") };

test.each([
  { usage: "client", flag: "--bootstrap-kubeconfig", signer: "kube-apiserver-client-kubelet" },
  { usage: "server", flag: "--rotate-server-certificates", signer: "kubelet-serving" },
] as const)(
  "$flag: a certificate is requested from the signer of nodes, and stored for root alone, behind a link",
  async ({ usage, signer }) => {
    const certDir = join(scratch(), "pki");
    const statuses = [{}, { conditions: [{ type: "Approved" }] }, issued];
    const { manager, bodies, subjects, stored } = aManager(certDir, statuses, usage);
    await manager.obtain(new AbortController().signal);
    expect(subjects).toEqual([
      {
        commonName: "system:node:n",
        organization: "system:nodes",
        names: usage === "client" ? [] : ["n", "192.0.2.1"],
      },
    ]);
    const request = Buffer.from("REQUEST").toString("base64");
    const usages = ["digital signature", "key encipherment", `${usage} auth`];
    const spec = { request, signerName: `kubernetes.io/${signer}`, usages };
    expect(bodies).toMatchObject([{ metadata: { generateName: "csr-" }, spec }]);
    const { path } = new CertificateFile(certDir, usage);
    expect(readFileSync(path, "utf8")).toBe("CERTIFICATE\nKEY\n");
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(certDir)).toHaveLength(2);
    expect(stored()).toBe(1);
  },
);

test("a request that is denied is followed by another one", async () => {
  const { manager, bodies } = aManager(scratch(), [{ conditions: [{ type: "Denied" }] }, issued]);
  await manager.obtain(new AbortController().signal);
  expect(bodies).toHaveLength(2);
});

test("certificates that are not good when they are issued are requested after growing delays", async () => {
  const { manager, bodies } = aManager(scratch(), Array(5).fill(issued));
  const stop = new AbortController();
  slept = [];
  const { sleep } = clock;
  clock.sleep = async (ms, signal) => {
    if (bodies.length === 5) stop.abort();
    await sleep(ms, signal);
  };
  await manager.run(stop.signal);
  clock.sleep = sleep;
  // Every request is checked once; the other delays lie between requests.
  const between = slept.filter((_, index) => index % 2 === 1);
  expect(between.slice(0, 4).map((ms, index) => ms >= 1_000 * 2 ** index)).toEqual([true, true, true, true]);
});

test("--bootstrap-kubeconfig counts while there is no kubeconfig, and not once it is written", () => {
  const directory = scratch();
  const options = {
    kubeconfig: join(directory, "etc", "kubelet.conf"),
    bootstrapKubeconfig: join(directory, "boot.conf"),
  };
  const cluster = { server: "https://10.0.0.1:6443", "certificate-authority": "ca.crt" };
  writeFileSync(options.bootstrapKubeconfig, toKubeconfig(cluster));
  const now = new Date();
  expect(needsBootstrap(options, now)).toBe(true);
  expect(needsBootstrap({ ...options, bootstrapKubeconfig: "" }, now)).toBe(false);
  mkdirSync(join(directory, "pki"));
  writeKubeconfig(options, join(directory, "pki"));
  const { cluster: written, user } = readKubeconfig(options.kubeconfig);
  expect(written["certificate-authority"]).toBe(join(directory, "ca.crt"));
  expect(user["client-certificate"]).toBe(join(directory, "pki", "kubelet-client-current.pem"));
  // The certificate itself is missing.
  expect(needsBootstrap(options, now)).toBe(true);
});

const LIFE = { fromMs: 1000, toMs: 2000 };

test.each([
  { random: 0, want: 1700 },
  { random: 0.5, want: 1800 },
  { random: 1, want: 1900 },
])("--rotate-certificates replaces a certificate after 70 to 90 % of its life: $want", ({ random, want }) => {
  expect(computeRotation(LIFE, random)).toBeCloseTo(want);
});

test.each([
  { nowMs: 999, want: false },
  { nowMs: 1000, want: true },
  { nowMs: 1999, want: true },
  { nowMs: 2000, want: false },
])("at $nowMs it is valid: $want", ({ nowMs, want }) => {
  expect(isValidAt(LIFE, nowMs)).toBe(want);
});

test.each([
  { status: undefined, want: { is: "waiting" } },
  { status: { conditions: [{ type: "Approved" }] }, want: { is: "waiting" } },
  {
    status: { conditions: [{ type: "Approved" }], certificate: Buffer.from("PEM").toString("base64") },
    want: { is: "issued", certificate: "PEM" },
  },
  {
    status: { conditions: [{ type: "Denied", reason: "R", message: "m" }], certificate: "UEVN" },
    want: { is: "refused", why: "Denied: R: m" },
  },
  { status: { conditions: [{ type: "Failed" }] }, want: { is: "refused", why: "Failed" } },
])("the state of a request: $want.is", ({ status, want }) => {
  expect(readSigningState(status)).toEqual(want as never);
});
