import { expect, test } from "bun:test";
import { replacedClaims } from "../../../src/controllers/claims.ts";
import { claimUsagePaths } from "../../../src/kubelet/volumes/claim-usage.ts";
import { aPod } from "../../support/builders.ts";

const original = aPod({
  volumes: [
    { name: "data", persistentVolumeClaim: { claimName: "disk" } },
    { name: "own", persistentVolumeClaim: { claimName: "own" } },
    { name: "share", persistentVolumeClaim: { claimName: "export" } },
    { name: "plain", hostPath: { path: "/etc", type: "" } },
  ],
});
const resolved = aPod({
  volumes: [
    { name: "data", hostPath: { path: "/srv/disk", type: "Directory" } },
    { name: "own", persistentVolumeClaim: { claimName: "own" } },
    { name: "share", nfs: { server: "nas", path: "/export" } },
    { name: "plain", hostPath: { path: "/etc", type: "" } },
  ],
});

test("claims have the directory they are bound to, or that of their Docker volume", () => {
  const claims = replacedClaims(original, resolved);
  expect(claims).toEqual({ data: "disk", share: "export" });
  const bound = { name: "data", path: "/srv/disk", method: "statfs" as const, isEphemeral: false, claimName: "disk" };
  expect(claimUsagePaths(resolved, claims, undefined)).toEqual([bound]);
  expect(claimUsagePaths(resolved, claims, "/var/lib/docker")).toEqual([
    bound,
    { name: "own", path: "/var/lib/docker/volumes/own/_data", method: "du", isEphemeral: false, claimName: "own" },
  ]);
});
