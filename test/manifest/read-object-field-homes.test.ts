import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { PodSchema } from "../../src/base/api/pod.ts";
import { DeploymentSchema } from "../../src/base/api/workload.ts";
import { objectShapeOf } from "../../src/manifest/decode/shape.ts";
import { findFieldHome } from "../../src/manifest/read-object.ts";

const pod = objectShapeOf(v.object(PodSchema.entries));
const deployment = objectShapeOf(v.object(DeploymentSchema.entries));

describe("where a field belongs", () => {
  test.each([
    ["hostname", "spec"],
    ["volumes", "spec"],
    ["privileged", "spec.containers[].securityContext"],
    ["containerPort", "spec.containers[].ports[]"],
    ["labels", "metadata"],
    ["spec", "the top level"],
  ])("%s of a pod: %s", (name, home) => {
    expect(findFieldHome(name, pod)).toBe(home);
  });

  test("the nearest place to the root counts", () => {
    expect(findFieldHome("restartPolicy", deployment)).toBe("spec.template.spec");
  });

  test.each([["nonsense"], ["fsType"]])("%s: no place, or several", (name) => {
    expect(findFieldHome(name, pod)).toBeUndefined();
  });
});
