import { expect, test } from "bun:test";
import type { NodeObject } from "../../../src/apiserver/printers/rows.ts";
import { formatLongTime } from "../../../src/apiserver/printers/rows.ts";
import { describeNode } from "../../../src/cli/print/describe-pods-and-nodes.ts";
import { aContainer } from "../../support/builders.ts";
import { ago, ended, has, NOW, shown } from "./pods.ts";

const NODE: NodeObject = {
  kind: "Node",
  apiVersion: "v1",
  metadata: { name: "node1", creationTimestamp: ago(3600), labels: { b: "2", a: "1" } },
  spec: { taints: [{ key: "edge", effect: "NoSchedule" }] },
  status: {
    capacity: { pods: "110", cpu: "2", memory: "4Gi" },
    allocatable: { pods: "110", cpu: "2", memory: "4000Mi" },
    conditions: [
      {
        type: "Ready",
        status: "True",
        lastHeartbeatTime: ago(0),
        lastTransitionTime: ago(3600),
        reason: "KubeletReady",
        message: "kubelet is posting ready status",
      },
    ],
    addresses: [{ type: "InternalIP", address: "192.0.2.7" }],
    nodeInfo: { machineID: "m", kernelVersion: "6.1", kubeletVersion: "v0.1.0" },
  },
};

const requesting = (name: string, resources: object) =>
  shown({ name, spec: { containers: [aContainer({ name: "app", resources })] } });

test("a node in kubectl's layout, with the requests of its pods", () => {
  const pods = [
    requesting("a-node1", { requests: { cpu: "500m", memory: "1Gi" }, limits: { cpu: "3", memory: "1Gi" } }),
    requesting("b-node1", {}),
    shown({ name: "done-node1", mains: [has("app", ended("Completed"))], status: { phase: "Succeeded" } }),
  ];
  expect(
    describeNode(NODE, pods, [], { now: NOW, toText: (time) => formatLongTime(time, () => 0) }),
  ).toBe(`Name:               node1
Roles:              <none>
Labels:             a=1
                    b=2
Annotations:        <none>
CreationTimestamp:  Sat, 21 Nov 2026 07:30:00 +0000
Taints:             edge:NoSchedule
Unschedulable:      false
Conditions:
  Type   Status  LastHeartbeatTime                LastTransitionTime               Reason        Message
  ----   ------  -----------------                ------------------               ------        -------
  Ready  True    Sat, 21 Nov 2026 08:30:00 +0000  Sat, 21 Nov 2026 07:30:00 +0000  KubeletReady  kubelet is posting ready status
Addresses:
  InternalIP:  192.0.2.7
Capacity:
  cpu:     2
  memory:  4Gi
  pods:    110
Allocatable:
  cpu:     2
  memory:  4000Mi
  pods:    110
System Info:
  Machine ID:                 m
  System UUID:
  Boot ID:
  Kernel Version:             6.1
  OS Image:
  Operating System:
  Architecture:
  Container Runtime Version:
  Kubelet Version:            v0.1.0
Non-terminated Pods:          (2 in total)
  Namespace                   Name     CPU Requests  CPU Limits  Memory Requests  Memory Limits  Age
  ---------                   ----     ------------  ----------  ---------------  -------------  ---
  default                     a-node1  500m (25%)    3 (150%)    1Gi (25%)        1Gi (25%)      5m32s
  default                     b-node1  0 (0%)        0 (0%)      0 (0%)           0 (0%)         5m32s
Allocated resources:
  (Total limits may be over 100 percent, i.e., overcommitted.)
  Resource           Requests    Limits
  --------           --------    ------
  cpu                500m (25%)  3 (150%)
  memory             1Gi (25%)   1Gi (25%)
  ephemeral-storage  0 (0%)      0 (0%)
Events:              <none>
`);
});
