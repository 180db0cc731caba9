import { expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import { computePodHostname } from "../../src/plan/pod-hostname.ts";

const LONG = "a".repeat(60);

test.each<{ when: string; name?: string; spec?: Partial<Pod["spec"]>; domain?: string; want: object }>([
  { when: "the name of the pod", want: { hostname: "p-node1", domain: "", kernelHostname: "p-node1" } },
  {
    when: "hostname and subdomain",
    spec: { hostname: "hh", subdomain: "ss" },
    want: { hostname: "hh", domain: "ss.default.svc.cluster.local", kernelHostname: "hh" },
  },
  {
    when: "setHostnameAsFQDN",
    spec: { hostname: "hh", subdomain: "ss", setHostnameAsFQDN: true },
    want: {
      hostname: "hh",
      domain: "ss.default.svc.cluster.local",
      kernelHostname: "hh.ss.default.svc.cluster.local",
    },
  },
  {
    when: "setHostnameAsFQDN without a subdomain",
    spec: { setHostnameAsFQDN: true },
    want: { hostname: "p-node1", domain: "", kernelHostname: "p-node1" },
  },
  {
    when: "over 63 characters, cut where a dash would end it",
    name: `${LONG}---node1`,
    want: { hostname: LONG, domain: "", kernelHostname: LONG },
  },
  {
    when: "63 characters fit",
    name: `${LONG}-n1`,
    want: { hostname: `${LONG}-n1`, domain: "", kernelHostname: `${LONG}-n1` },
  },
  {
    when: "an FQDN of more than 64 characters",
    spec: { hostname: LONG, subdomain: "s", setHostnameAsFQDN: true },
    want: {
      problem: `failed to construct FQDN from pod hostname and cluster domain, FQDN ${LONG}.s.default.svc.cluster.local is too long (64 characters is the max, 88 characters requested)`,
    },
  },
  {
    when: "nothing is left after the cut",
    name: "-".repeat(64),
    want: { problem: `hostname for pod "${"-".repeat(64)}" was invalid: "${"-".repeat(64)}"` },
  },
  {
    when: "hostnameOverride takes the place of both",
    spec: { hostname: "hh", subdomain: "ss", hostnameOverride: "box.example" },
    want: { hostname: "box.example", domain: "", kernelHostname: "box.example" },
  },
])("$when", ({ name = "p-node1", spec, domain = "cluster.local", want }) => {
  const pod = { metadata: { name, namespace: "default" }, spec: { containers: [], ...spec } } as unknown as Pod;
  expect(computePodHostname(pod, domain)).toEqual(want as ReturnType<typeof computePodHostname>);
});
