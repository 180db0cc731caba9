import { expect, test } from "bun:test";
import {
  computeRotation,
  isValidAt,
  nodeIdentity,
  readSigningState,
  SIGNERS,
} from "../../../src/cluster/certificates/certificate-files.ts";

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

test("--bootstrap-kubeconfig and --rotate-server-certificates ask the signers of nodes, with the usages they demand", () => {
  expect(SIGNERS.client.signerName).toBe("kubernetes.io/kube-apiserver-client-kubelet");
  expect(SIGNERS.server.usages).toEqual(["digital signature", "key encipherment", "server auth"]);
  expect(nodeIdentity("n")).toEqual({ commonName: "system:node:n", organization: "system:nodes" });
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
