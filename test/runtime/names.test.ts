import { expect, test } from "bun:test";
import { parseDockerName, toConflictFreeName, toContainerName, toSandboxName } from "../../src/runtime/names.ts";
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

const PARSED = { containerName: "first", podName: "lblpod-node1", namespace: "my-ns", uid: "0123", attempt: 7 };

test.each([
  { name: toContainerName(POD, "first", 7), want: PARSED },
  { name: `/${toContainerName(POD, "first", 7)}`, want: PARSED },
  { name: "k8s_first_lblpod-node1_my-ns_0123_7_80000000", want: PARSED },
  { name: "/other", want: undefined },
  { name: "k8s_a_b_c_d_x", want: undefined },
  { name: "k8s_a_b_c__1", want: undefined },
  { name: "cri_a_b_c_d_1", want: undefined },
])("$name is read back", ({ name, want }) => {
  expect(parseDockerName(name)).toEqual(want as typeof PARSED);
});
