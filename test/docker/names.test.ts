import { expect, test } from "bun:test";
import { toConflictFreeName, toContainerName, toSandboxName } from "../../src/docker/names.ts";
import { aPod } from "./mapping-requests.ts";

const POD = aPod({ metadata: { name: "lblpod-node1", namespace: "my-ns", uid: "0123" } });

test("names are dockershim's", () => {
  expect(toSandboxName(POD, 2)).toBe("k8s_POD_lblpod-node1_my-ns_0123_2");
  expect(toContainerName(POD, "first", 0)).toBe("k8s_first_lblpod-node1_my-ns_0123_0");
});

test("a uid that Docker would refuse in a name is made to fit", () => {
  const pod = aPod({ metadata: { uid: "a/b_c ü" } });
  expect(toContainerName(pod, "c", 0)).toBe("k8s_c_web-node1_default_a-b-c--_0");
});

test("a name in use gets eight random hex digits", () => {
  expect(toConflictFreeName("k8s_c_p_n_u_0", () => 0.5)).toBe("k8s_c_p_n_u_0_80000000");
  expect(toConflictFreeName("x", () => 0)).toBe("x_00000000");
});
