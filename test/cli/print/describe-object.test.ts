import { expect, test } from "bun:test";
import { formatLongTime } from "../../../src/apiserver/printers/rows.ts";
import type { Pod } from "../../../src/base/api/pod.ts";
import type { ApiObject } from "../../../src/cli/client/api-client.ts";
import { describeObject } from "../../../src/cli/print/describe-object.ts";
import { ServicePods } from "../../../src/plan/service-endpoints.ts";
import { aContainer, aPod } from "../../support/builders.ts";

const AROUND = {
  events: [],
  pods: [],
  manifest: "/srv/web.yaml:3",
  times: {
    now: new Date("2026-11-21T08:35:00Z"),
    toText: (time: string | null | undefined) => formatLongTime(time, () => 0),
  },
};

const object = (kind: string, more: object): ApiObject => ({
  apiVersion: "v1",
  kind,
  metadata: { name: "web", namespace: "default" },
  ...more,
});

const ready = (name: string, podIP: string): Pod => ({
  ...aPod({ containers: [aContainer({ name: "a", ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }] })] }),
  metadata: { name, namespace: "default", labels: { app: "web" } },
  status: {
    phase: "Running",
    podIPs: [{ ip: podIP }],
    conditions: [{ type: "Ready", status: "True" }],
  } as Pod["status"],
});

test("a Service with the addresses of its pods that are ready", () => {
  const service = object("Service", {
    spec: {
      type: "ClusterIP",
      selector: { app: "web" },
      ports: [{ name: "www", port: 80, targetPort: "http", protocol: "TCP" }],
    },
  });
  const waiting = { ...ready("b", "192.0.2.3"), status: { phase: "Pending" } } as Pod;
  expect(
    describeObject(service, {
      ...AROUND,
      backends: new ServicePods([ready("a", "192.0.2.2"), waiting]).behind(service as never),
    }),
  ).toBe(`Name:              web
Namespace:         default
Manifest:          /srv/web.yaml:3
Labels:            <none>
Annotations:       <none>
Selector:          app=web
Type:              ClusterIP
IP Families:       <none>
IP:
IPs:               <none>
Port:              www  80/TCP
TargetPort:        http/TCP
Endpoints:         192.0.2.2:8080
Session Affinity:  None
Events:            <none>
`);
});

test("a Secret, with the sizes only", () => {
  const text = describeObject(object("Secret", { type: "Opaque", data: { word: "Z2VoZWlt" } }), AROUND);
  expect(text).toContain("word:  6 bytes");
  expect(text).not.toContain("Z2VoZWlt");
  expect(text).not.toContain("geheim");
});

test("a ConfigMap line by line", () => {
  const text = describeObject(object("ConfigMap", { data: { a: "1\n2" }, binaryData: { b: "AAA=" } }), AROUND);
  expect(text).toContain("\nData\n====\na:\n----\n1\n2\n\n\nBinaryData\n====\nb: 2 bytes\n");
});

test("a Deployment: the newest ReplicaSet, and older ones that still have pods", () => {
  const set = (name: string, revision: string, replicas: number) => ({
    ...object("ReplicaSet", { spec: { replicas }, status: { replicas } }),
    metadata: { name, annotations: { "deployment.kubernetes.io/revision": revision } },
  });
  const deployment = object("Deployment", {
    spec: {
      replicas: 2,
      selector: {
        matchLabels: { app: "web" },
        matchExpressions: [{ key: "tier", operator: "In", values: ["a", "b"] }],
      },
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: "25%" } },
      template: { metadata: { labels: { app: "web" } }, spec: { containers: [aContainer({ name: "a" })] } },
    },
    status: { replicas: 3, updatedReplicas: 1, conditions: [{ type: "Available", status: "True", reason: "Enough" }] },
  });
  const replicaSets = [set("web-1", "9", 1), set("web-2", "10", 2), set("web-0", "8", 0)];
  const text = describeObject(deployment, { ...AROUND, replicaSets });
  for (const line of [
    "Selector:               app=web,tier in (a,b)",
    "Replicas:               2 desired | 1 updated | 3 total | 0 available | 0 unavailable",
    "RollingUpdateStrategy:  1 max unavailable, 25% max surge",
    "OldReplicaSets:  web-1 (1/1 replicas created)",
    "NewReplicaSet:   web-2 (2/2 replicas created)",
  ])
    expect(text).toContain(line);
  expect(text).not.toContain("web-0");
});

test("any other kind field by field", () => {
  const claim = object("PersistentVolumeClaim", { spec: { accessModes: ["ReadWriteOnce"], volumeName: null } });
  expect(describeObject(claim, AROUND)).toContain(`API Version:  v1
Kind:         PersistentVolumeClaim
Metadata:
Spec:
  Access Modes:
    ReadWriteOnce
  Volume Name:  <nil>
Events:         <none>
`);
});

test("an Ingress with its hosts, paths and certificates", () => {
  const to = (name: string) => ({ backend: { service: { name, port: { number: 80 } } } });
  const paths = [
    { path: "/", pathType: "Prefix", ...to("web") },
    { path: "/api", pathType: "Prefix", ...to("api") },
  ];
  const ingress = object("Ingress", {
    spec: { tls: [{ hosts: ["a.example"], secretName: "cert" }], rules: [{ host: "a.example", http: { paths } }] },
    status: { loadBalancer: { ingress: [{ ip: "192.0.2.1" }] } },
  });
  expect(describeObject(ingress, AROUND)).toBe(`Name:             web
Namespace:        default
Manifest:         /srv/web.yaml:3
Labels:           <none>
Address:          192.0.2.1
Ingress Class:    <none>
Default backend:  <default>
TLS:
  cert terminates a.example
Rules:
  Host        Path  Backends
  ----        ----  --------
  a.example
              /     web:80
              /api  api:80
Annotations:  <none>
Events:       <none>
`);
});
