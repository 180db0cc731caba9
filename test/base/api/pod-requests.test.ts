import { expect, test } from "bun:test";
import { withRequests } from "../../../src/base/api/pod-requests.ts";
import { prepareState } from "../../../src/controllers/prepare-state.ts";
import { podTemplate, readObjects } from "../../controllers/workload-world.ts";

const limits = { memory: "64Mi" };
const template = podTemplate("busybox:1", { containers: [{ name: "app", image: "busybox:1", resources: { limits } }] });

test.each([
  { kind: "Deployment", apiVersion: "apps/v1", spec: { selector: { matchLabels: { app: "web" } }, template } },
  {
    kind: "Job",
    apiVersion: "batch/v1",
    spec: { template: { ...template, spec: { ...template.spec, restartPolicy: "Never" } } },
  },
])("the template of a $kind keeps what was written; its pods request what they are limited to", ({ kind, ...rest }) => {
  const objects = readObjects({ ...rest, kind, metadata: { name: "web" } });
  const templateOf = (it: unknown) =>
    (it as { object: { spec: { template: ReturnType<typeof podTemplate> & { spec: { containers: object[] } } } } })
      .object.spec.template;
  expect(templateOf(objects[0]).spec.containers).toMatchObject([{ resources: { limits } }]);
  expect(templateOf(objects[0]).spec.containers[0]).not.toHaveProperty("resources.requests");
  const { workloads } = prepareState({ pods: [], configMaps: new Map(), secrets: new Map(), objects });
  expect(templateOf(workloads[0]).spec.containers).toMatchObject([{ resources: { limits, requests: limits } }]);
});

test("requests that were written stay, those of the whole pod are the sum of its containers", () => {
  const containers = ["a", "b"].map((name) => ({ name, resources: { limits: { cpu: "2" }, requests: { cpu: "1" } } }));
  const { spec } = withRequests({
    spec: { containers, resources: { limits: { cpu: "4", memory: "1Gi" } } } as never,
  }) as {
    spec: { containers: unknown; resources: unknown };
  };
  expect(spec.containers).toEqual(containers);
  expect(spec.resources).toEqual({ limits: { cpu: "4", memory: "1Gi" }, requests: { cpu: "2", memory: "1Gi" } });
});
