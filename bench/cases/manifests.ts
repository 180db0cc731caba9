import { readManifest } from "../../src/manifest/read-manifest.ts";
import { type BenchCase, type Measurement, median } from "../bench-case.ts";

const SMALL = `apiVersion: v1
kind: Pod
metadata:
  name: small
spec:
  containers:
  - name: app
    image: busybox:1.36
`;

/** A typical pod: two containers, probes, resources, env, volumes, a security context. */
const typical = (name: string) => `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
  namespace: shop
  labels:
    app.kubernetes.io/name: ${name}
    app.kubernetes.io/part-of: shop
  annotations:
    example.com/owner: "team-a"
spec:
  restartPolicy: Always
  terminationGracePeriodSeconds: 20
  securityContext:
    runAsNonRoot: true
    fsGroup: 1000
  initContainers:
  - name: migrate
    image: registry.example.com:5000/shop/migrate:1.4.2
    command: ["/bin/migrate", "--up"]
    env:
    - {name: DB_HOST, value: db.shop.svc}
  containers:
  - name: web
    image: registry.example.com:5000/shop/web:1.4.2
    args: ["--port=8080", "--verbose"]
    ports:
    - {name: http, containerPort: 8080, hostPort: 8080}
    - {name: metrics, containerPort: 9090}
    env:
    - {name: LOG_LEVEL, value: info}
    - name: POD_NAME
      valueFrom: {fieldRef: {fieldPath: metadata.name}}
    - name: PASSWORD
      valueFrom: {secretKeyRef: {name: shop, key: password}}
    resources:
      requests: {cpu: 100m, memory: 64Mi}
      limits: {cpu: 500m, memory: 256Mi}
    livenessProbe:
      httpGet: {path: /healthz, port: http}
      periodSeconds: 5
    readinessProbe:
      httpGet: {path: /ready, port: 8080}
    securityContext:
      allowPrivilegeEscalation: false
      capabilities: {drop: [ALL]}
    volumeMounts:
    - {name: config, mountPath: /etc/shop, readOnly: true}
    - {name: cache, mountPath: /var/cache}
  - name: sidecar
    image: registry.example.com:5000/ops/logs:2.0
    volumeMounts:
    - {name: cache, mountPath: /cache, readOnly: true}
  volumes:
  - name: config
    configMap: {name: shop}
  - name: cache
    emptyDir: {sizeLimit: 256Mi}
`;

const INPUTS: readonly { what: string; text: string; objects: number; goal?: number }[] = [
  { what: "a small manifest", text: SMALL, objects: 1 },
  { what: "a typical manifest", text: typical("web"), objects: 1, goal: 1000 },
  {
    what: "a stream of 110 typical pods",
    text: Array.from({ length: 110 }, (_, index) => typical(`web-${index}`)).join("---\n"),
    objects: 110,
    goal: 1000,
  },
];

const RUNS = 7;
const OBJECTS_PER_RUN = 1100;

/** Median time for one object, text to defaulted and validated pod, in this process. Unit: milliseconds. */
function measure(text: string, objects: number): { value: number; runs: number[] } {
  const bytes = Buffer.from(text);
  const rounds = Math.max(1, Math.round(OBJECTS_PER_RUN / objects));
  const runs = Array.from({ length: RUNS }, () => {
    const start = performance.now();
    for (let round = 0; round < rounds; round++) {
      const { pods } = readManifest(bytes, { file: "bench.yaml", nodeName: "bench", source: "file" });
      if (pods.length !== objects) throw new Error(`${pods.length} of ${objects} pods are valid`);
    }
    return (performance.now() - start) / rounds / objects;
  });
  return { value: median(runs), runs };
}

/** Time to refuse the slowest known kinds of hostile text. Unit: milliseconds. */
function measureRefusals(): Measurement[] {
  const levels = Array.from({ length: 20 }, (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i},`.repeat(9)}]`).join("\n");
  const hostile: readonly (readonly [string, Uint8Array])[] = [
    ["an alias bomb", Buffer.from(`a0: &a0 [x]\n${levels}`)],
    ["10 MiB of list items", Buffer.from("- a\n".repeat(2.5 * 1024 * 1024)).subarray(0, 10 * 1024 * 1024 - 1)],
    ["10 MiB of open brackets", Buffer.alloc(10 * 1024 * 1024 - 1, "[")],
    ["more than 10 MiB", Buffer.alloc(10 * 1024 * 1024, " ")],
  ];
  return hostile.map(([what, bytes]) => {
    const start = performance.now();
    const { results } = readManifest(bytes, { file: "bench.yaml", nodeName: "bench", source: "file" });
    if (results.some((result) => result.ok)) throw new Error(`${what} was accepted`);
    return { what: `${what} refused`, unit: "ms", value: performance.now() - start, goal: { atMost: 3000 } };
  });
}

/** Manifests read, defaulted and validated per second. */
export const manifestsCases: readonly BenchCase[] = [
  {
    name: "manifests",
    about: "text to validated pods: small, typical, a stream of 110; and hostile texts",
    run: async () => [
      ...INPUTS.map(({ what, text, objects, goal }): Measurement => {
        const { value, runs } = measure(text, objects);
        const bound = goal === undefined ? {} : { goal: { atMost: 1000 / goal } };
        return { what: `${what}, per pod`, unit: "ms", value, runs, ...bound };
      }),
      ...measureRefusals(),
    ],
  },
];
