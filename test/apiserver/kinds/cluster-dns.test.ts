import { expect, test } from "bun:test";
import type { ApiObject } from "../../../src/apiserver/api-object.ts";
import { ExplicitClusterDns } from "../../../src/apiserver/kinds/cluster-dns.ts";

const pod = (
  metadata: Partial<ApiObject["metadata"]> = {},
  spec: object = { dnsPolicy: "ClusterFirst" },
): ApiObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", uid: "1", ...metadata },
  spec,
});

const applied = (configuration: string) => ({
  annotations: { "kubectl.kubernetes.io/last-applied-configuration": configuration },
});
const owned = (operation: string, fieldsV1: object) => ({
  managedFields: [{ manager: "m", operation, fieldsV1: fieldsV1 as never }],
});
const template = { template: { spec: { dnsPolicy: "ClusterFirst" } } };

test.each([
  { when: "nothing records what was written", object: pod(), want: false },
  { when: "kubectl apply wrote it", object: pod(applied('{"spec":{"dnsPolicy":"ClusterFirst"}}')), want: true },
  { when: "kubectl apply did not write it", object: pod(applied('{"spec":{}}')), want: false },
  { when: "the annotation is damaged", object: pod(applied('{"spec":')), want: false },
  { when: "the annotation is not an object", object: pod(applied("null")), want: false },
  { when: "server-side apply owns it", object: pod(owned("Apply", { "f:spec": { "f:dnsPolicy": {} } })), want: true },
  {
    when: "an update owns it, defaults included",
    object: pod(owned("Update", { "f:spec": { "f:dnsPolicy": {} } })),
    want: false,
  },
  {
    when: "another policy is in force",
    object: pod(applied('{"spec":{"dnsPolicy":"ClusterFirst"}}'), { dnsPolicy: "Default" }),
    want: false,
  },
  {
    when: "the template of a workload says it",
    object: pod(applied(JSON.stringify({ spec: template })), template),
    want: true,
  },
])("dnsPolicy ClusterFirst when $when", ({ object, want }) => {
  expect(new ExplicitClusterDns().of(object).asksForClusterDns ?? false).toBe(want);
});

test("what a client sent counts until the object is gone", () => {
  const dns = new ExplicitClusterDns();
  dns.note(pod(), { spec: {} });
  expect(dns.of(pod())).toEqual({});
  dns.note(pod(), { spec: { dnsPolicy: "ClusterFirst" } });
  expect(dns.of(pod())).toEqual({ asksForClusterDns: true });
  expect(dns.of(pod({ uid: "2" }))).toEqual({});
  // It writes out every default.
  const run = pod({ uid: "3", managedFields: [{ manager: "kubectl-run", operation: "Update" }] });
  dns.note(run, run);
  expect(dns.of(run)).toEqual({});
  dns.forget(pod());
  expect(dns.of(pod())).toEqual({});
});
