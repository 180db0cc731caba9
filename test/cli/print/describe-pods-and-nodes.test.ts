import { expect, test } from "bun:test";
import { formatLongTime } from "../../../src/apiserver/printers/rows.ts";
import type { CoreEvent } from "../../../src/base/api/event.ts";
import type { Probe } from "../../../src/base/api/pod.ts";
import { describePod, probeText } from "../../../src/cli/print/describe-pods-and-nodes.ts";
import { aContainer, aCoreEvent } from "../../support/builders.ts";
import { ago, ended, has, NOW, running, type ShownPod, shown, waiting } from "./pods.ts";

const TIMES = { now: NOW, toText: (time: string | null | undefined) => formatLongTime(time, () => 0) };

const describeShown = (pod: ShownPod, events: CoreEvent[] = []) => describePod(shown(pod), events, TIMES);

const anEvent = (over: Partial<CoreEvent>) => aCoreEvent("web-node1", ago(60), over);

test("a pod in kubectl's layout", () => {
  const text = describeShown(
    {
      metadata: { labels: { tier: "front", app: "web" }, annotations: { note: "one\ntwo" } },
      spec: {
        nodeSelector: { disk: "ssd" },
        tolerations: [
          { operator: "Exists", effect: "NoExecute" },
          { key: "k", value: "v", tolerationSeconds: 60 },
        ],
        volumes: [
          { name: "data", emptyDir: { medium: "Memory" } },
          { name: "pass", secret: { secretName: "pass", defaultMode: 420 } },
        ],
        containers: [
          aContainer({
            command: ["sh", "-c"],
            args: ["echo a\necho b"],
            ports: [{ containerPort: 80, protocol: "TCP", name: "http", hostPort: 8080 }],
            env: [
              { name: "PASS", valueFrom: { secretKeyRef: { name: "pass", key: "word" } } },
              { name: "MODE", value: "<redacted>" },
            ],
            envFrom: [{ prefix: "X_", configMapRef: { name: "settings" } }],
            resources: { limits: { memory: "64Mi", cpu: "1" } },
            livenessProbe: { httpGet: { port: "http", path: "/up", scheme: "HTTP" } } as Probe,
            volumeMounts: [
              { name: "pass", mountPath: "/pass", readOnly: true, subPath: "word" },
              { name: "data", mountPath: "/data" },
            ],
          }),
        ],
      },
      status: {
        qosClass: "Burstable",
        conditions: [
          { type: "Initialized", status: "True" },
          { type: "Ready", status: "False", reason: "ContainersNotReady", message: "app\nis not" },
        ],
      },
      mains: [
        has("app", waiting("CrashLoopBackOff"), {
          restartCount: 2,
          imageID: "docker://sha256:aa",
          lastState: ended("Error", 1, { message: "no disk\nno luck\n" }),
        }),
      ],
    },
    [
      anEvent({}),
      anEvent({
        type: "Warning",
        reason: "BackOff",
        message: "Back-off\nagain",
        count: 4,
        lastTimestamp: ago(10),
        firstTimestamp: ago(200),
      }),
    ],
  );
  expect(text).toBe(`Name:         web-node1
Namespace:    default
Node:         node1/192.0.2.7
Start Time:   Sat, 21 Nov 2026 08:24:28 +0000
Labels:       app=web
              tier=front
Annotations:  note:
                one
                two
Status:       Running
IP:           172.17.0.2
IPs:
  IP:  172.17.0.2
Containers:
  app:
    Container ID:  docker://app-0
    Image:         busybox:test
    Image ID:      docker://sha256:aa
    Port:          80/TCP (http)
    Host Port:     8080/TCP
    Command:
      sh
      -c
    Args:
      echo a
      echo b
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       Error
      Message:      no disk
                    no luck
      Exit Code:    1
      Started:      Sat, 21 Nov 2026 08:29:00 +0000
      Finished:     Sat, 21 Nov 2026 08:29:30 +0000
    Ready:          False
    Restart Count:  2
    Limits:
      cpu:     1
      memory:  64Mi
    Liveness:  http-get http://:http/up delay=0s timeout=1s period=10s #success=1 #failure=3
    Environment Variables from:
      settings  ConfigMap with prefix 'X_'  Optional: false
    Environment:
      PASS:  <set to the key 'word' in secret 'pass'>  Optional: false
      MODE:  <redacted>
    Mounts:
      /data from data (rw)
      /pass from pass (ro,path="word")
Conditions:
  Type         Status  Reason              Message
  Initialized  True
  Ready        False   ContainersNotReady  app...
Volumes:
  data:
    Type:       EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:     Memory
    SizeLimit:  <unset>
  pass:
    Type:        Secret (a volume populated by a Secret)
    SecretName:  pass
    Optional:    false
QoS Class:       Burstable
Node-Selectors:  disk=ssd
Tolerations:     :NoExecute op=Exists
                 k=v for 60s
Events:
  Type     Reason   Age                  From     Message
  ----     ------   ----                 ----     -------
  Normal   Started  60s                  kubelet  Started container app
  Warning  BackOff  10s (x4 over 3m20s)  kubelet  Back-off...
`);
});

test("empty fields are shown as <none>", () => {
  const text = describeShown({
    status: { phase: "Pending", podIP: "", podIPs: [], conditions: [] },
    mains: [],
    spec: { containers: [aContainer()] },
  });
  for (const line of ["Labels:", "Annotations:", "Node-Selectors:", "Tolerations:", "Volumes:", "Events:", "IPs:"]) {
    expect(text).toMatch(new RegExp(`^${line} +<none>$`, "m"));
  }
  expect(text).not.toContain("State:");
  expect(text).not.toContain("Conditions:");
});

test("control characters of a message are escaped", () => {
  const text = describeShown({ mains: [has("app", ended("Error", 1, { message: "\u001b[2Jhello" }))] });
  expect(text).toContain("Message:      ^[[2Jhello");
  expect(text).not.toContain("\u001b");
});

test("init containers have a heading of their own", () => {
  const text = describeShown({ init: [has("i0", ended("Completed"))], mains: [has("app", running)] });
  expect(text).toMatch(/^Init Containers:\n {2}i0:\n[\s\S]*^Containers:\n {2}app:\n/m);
});

test.each([
  [{ exec: { command: ["cat", "/ok"] } }, "exec [cat /ok]"],
  [{ httpGet: { port: 80, path: "/", scheme: "HTTPS", host: "h" } }, "http-get https://h:80/"],
  [{ httpGet: { port: 80, path: "up", scheme: "HTTP" } }, "http-get http://:80/up"],
  [{ tcpSocket: { port: "db" } }, "tcp-socket :db"],
  [{ grpc: { port: 9000, service: "" } }, "grpc <pod>:9000"],
  [{ grpc: { port: 9000, service: "live" } }, "grpc <pod>:9000 live"],
])("probe %j", (probe, want) => {
  expect(probeText({ ...probe, periodSeconds: 5 } as Probe)).toBe(
    `${want} delay=0s timeout=1s period=5s #success=1 #failure=3`,
  );
});
