import { describe, expect, test } from "bun:test";
import {
  type ImageUpdateDefaults,
  imageUpdateSettingsOf,
  isUpdatable,
  updateOwnerOf,
} from "../../src/plan/image-update-settings.ts";
import { aPod } from "../support/builders.ts";

const OFF: ImageUpdateDefaults = { policy: { kind: "never" }, schedule: "0 4 * * *", window: "always" };
const pod = (annotations: Record<string, string>) => aPod({}, { annotations });

describe("settings", () => {
  test("nothing is updated unless it is asked for", () => {
    expect(imageUpdateSettingsOf(pod({}), OFF)).toBeUndefined();
    const node: ImageUpdateDefaults = { ...OFF, policy: { kind: "digest" } };
    expect(imageUpdateSettingsOf(pod({}), node)?.policy).toEqual({ kind: "digest" });
    expect(imageUpdateSettingsOf(pod({ "kubelet-ts.io/image-update": "never" }), node)).toBeUndefined();
  });

  test("annotations come before the defaults of the node", () => {
    const settings = imageUpdateSettingsOf(
      pod({
        "kubelet-ts.io/image-update": "semver:~1.4",
        "kubelet-ts.io/image-update-schedule": "30 1 * * *",
        "kubelet-ts.io/image-update-window": "0 2 * * * +1h",
        "kubelet-ts.io/update-deadline": "90s",
        "kubelet-ts.io/image-update-hold": "true",
        "kubelet-ts.io/image-update-lock": "data/lock",
      }),
      OFF,
    );
    expect(settings).toMatchObject({
      policy: { kind: "semver", range: "~1.4" },
      scheduleText: "30 1 * * *",
      deadlineMs: 90_000,
      isHeld: true,
      lock: "data/lock",
    });
    expect(settings?.window.isOpen(new Date("2026-01-01T12:00:00"))).toBe(false);
  });

  test("a schedule that cannot be read is that of the node", () => {
    const annotations = { "kubelet-ts.io/image-update": "digest", "kubelet-ts.io/image-update-schedule": "99 * * * *" };
    expect(imageUpdateSettingsOf(pod(annotations), OFF)?.scheduleText).toBe("0 4 * * *");
  });
});

test("a name with a digest is pinned by the manifest", () => {
  expect(isUpdatable("nginx")).toBe(true);
  expect(isUpdatable("nginx:1.22")).toBe(true);
  expect(isUpdatable(`nginx@sha256:${"a".repeat(64)}`)).toBe(false);
  expect(isUpdatable("NO such image")).toBe(false);
});

describe("what is updated as one", () => {
  const owned = (kind: string, name: string, labels = {}) =>
    aPod(
      {},
      {
        name: `${name}-x`,
        namespace: "shop",
        labels,
        ownerReferences: [{ apiVersion: "apps/v1", kind, name, uid: "u", controller: true }],
      },
    );

  test("a pod of a file by the name in the manifest", () => {
    expect(updateOwnerOf(aPod({ nodeName: "node1" }, { name: "web-node1", namespace: "default" }))).toBe("default/web");
    expect(updateOwnerOf(aPod({ nodeName: "node1" }, { name: "web", namespace: "default" }))).toBe("default/web");
  });

  test("all pods of a workload; none of a Job", () => {
    expect(updateOwnerOf(owned("ReplicaSet", "web-5d4", { "pod-template-hash": "5d4" }))).toBe("shop/Deployment/web");
    expect(updateOwnerOf(owned("ReplicaSet", "web"))).toBe("shop/ReplicaSet/web");
    expect(updateOwnerOf(owned("StatefulSet", "db"))).toBe("shop/StatefulSet/db");
    expect(updateOwnerOf(owned("Job", "migrate"))).toBeUndefined();
  });
});
