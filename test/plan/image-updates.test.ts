import { describe, expect, test } from "bun:test";
import {
  decideUpdateStep,
  type ImageUpdateDefaults,
  type ImageUpdateRecord,
  imageUpdateSettingsOf,
  isUpdatable,
  noteFailed,
  noteKept,
  noteLookedUp,
  notePulled,
  noteRolledBack,
  noteSame,
  noteStarted,
  noteSwapped,
  pickTag,
  pinFor,
  type UpdateFacts,
  undoUpdate,
  updateOwnerOf,
  updateStateOf,
} from "../../src/plan/image-updates.ts";
import { aPod } from "../support/builders.ts";

const NOW = new Date("2026-01-02T04:00:00Z");
const ready = { state: "ready" } as const;
const pending = { state: "pending" } as const;
const failed = { state: "failed", message: "container app restarted 3 times" } as const;
const live = (uid: string, verdict: UpdateFacts["pods"][number]["verdict"] = ready) => ({ uid, isLive: true, verdict });

const current = { ref: "web@sha256:a", tag: "1", isBaseline: true as const };
const candidate = { ref: "web@sha256:b", tag: "1", foundAt: NOW.toISOString() };
const pulled = { ...candidate, isPulled: true as const };
const record = (more: Partial<ImageUpdateRecord> = {}): ImageUpdateRecord => ({
  owner: "default/web",
  image: "web:1",
  rejected: [],
  current,
  nextCheckAt: "2026-01-03T04:00:00Z",
  ...more,
});
const facts = (more: Partial<UpdateFacts> = {}): UpdateFacts => ({
  now: NOW,
  pods: [live("a")],
  isWindowOpen: true,
  hold: undefined,
  isCheckAsked: false,
  ...more,
});
const trial = (...pods: string[]) => ({ pods, starts: 0 });
const found = record({ candidate: pulled });
/** On trial with these pods. */
const tried = (...pods: string[]) => record({ candidate: pulled, trial: trial(...pods) });
const among = (...pods: UpdateFacts["pods"]) => facts({ pods });
const unknown: ImageUpdateRecord = { owner: "o", image: "i", rejected: [] };

describe("the next step", () => {
  test.each<[string, ImageUpdateRecord, UpdateFacts, string]>([
    ["before its time", record(), facts(), "nothing"],
    ["at its time", record({ nextCheckAt: NOW.toISOString() }), facts(), "look-up"],
    ["when asked", record(), facts({ isCheckAsked: true }), "look-up"],
    ["no look-up before the running image is known", unknown, facts({ isCheckAsked: true }), "nothing"],
    ["a new image is pulled, outside the window too", record({ candidate }), facts({ isWindowOpen: false }), "pull"],
    ["a failed pull waits for the next look-up", record({ candidate, error: "no space" }), facts(), "nothing"],
    ["outside the window it waits", found, facts({ isWindowOpen: false }), "nothing"],
    ["held", found, facts({ hold: "held by its annotation" }), "nothing"],
    ["in the window", found, facts(), "swap"],
    ["a pod that is being edited", found, among({ ...live("a"), isLive: false }), "nothing"],
    ["without pods", found, among(), "nothing"],
    ["on trial", tried("a"), among(live("a", pending)), "nothing"],
    ["Ready with it", tried("a"), facts(), "keep"],
    ["failed with it", tried("a"), among(live("a", failed)), "roll-back"],
    ["the next pod's turn", tried("a"), among(live("a"), live("b")), "swap"],
    ["one pod at a time", tried("a"), among(live("a", pending), live("b")), "nothing"],
    ["the second pod fails", tried("a", "b"), among(live("a"), live("b", failed)), "roll-back"],
    ["a hold does not end a trial", tried("a"), facts({ hold: "held" }), "keep"],
    ["no pod of the trial is left", tried("gone"), facts(), "swap"],
    [
      "the machine went down with it three times",
      record({ candidate: pulled, trial: { pods: ["a"], starts: 3 } }),
      among(live("a", pending)),
      "roll-back",
    ],
  ])("%s", (_, given, what, want) => {
    expect(decideUpdateStep(given, what).do).toBe(want as never);
  });

  test("the pod that is next is named", () => {
    const step = decideUpdateStep(tried("a"), among(live("a"), live("b"), live("c")));
    expect(step).toMatchObject({ do: "swap", uid: "b" });
  });
});

describe("records", () => {
  test("a digest that runs already, under this or another name, is nothing new", () => {
    expect(noteLookedUp(record({ candidate }), { ref: current.ref, tag: "1" }, NOW, NOW).candidate).toBeUndefined();
    const same = noteSame(record({ candidate }));
    expect(noteLookedUp(same, { ref: candidate.ref, tag: "1" }, NOW, NOW).candidate).toBeUndefined();
    expect(same.current).toMatchObject({ ref: current.ref, isBaseline: true });
  });

  test("a bad digest is remembered and not offered again; the next one is", () => {
    const bad = noteRolledBack(noteSwapped(found, "a"), "crashed", NOW);
    expect(bad).toMatchObject({ current, rejected: [{ ref: candidate.ref, why: "crashed" }] });
    expect(bad.candidate ?? bad.trial).toBeUndefined();
    expect(noteLookedUp(bad, { ref: candidate.ref, tag: "1" }, NOW, NOW).candidate).toBeUndefined();
    expect(noteLookedUp(bad, { ref: "web@sha256:c", tag: "1" }, NOW, NOW).candidate?.ref).toBe("web@sha256:c");
    expect(updateStateOf(bad, undefined)).toBe("failed");
  });

  test("at most 20 bad digests are kept", () => {
    let bad = record();
    for (let index = 0; index < 30; index++) {
      bad = noteRolledBack({ ...bad, candidate: { ...candidate, ref: `web@${index}` } }, "x", NOW);
    }
    expect(bad.rejected.map(({ ref }) => ref)).toEqual(Array.from({ length: 20 }, (_, index) => `web@${index + 10}`));
  });

  test("an image that is kept is the current one, no baseline any more; undo goes back and rejects it", () => {
    const kept = noteKept(noteSwapped(found, "a"), NOW);
    expect(kept).toMatchObject({ current: { ref: candidate.ref, tag: "1" }, former: current });
    expect(kept.trial ?? kept.candidate).toBeUndefined();
    const undone = undoUpdate(kept, NOW)!;
    expect(undone).toMatchObject({ current, rejected: [{ ref: candidate.ref, why: "it was undone" }] });
    expect(undoUpdate(undone, NOW)).toBeUndefined();
    expect(updateStateOf(undone, undefined)).toBe("pinned");
    const duringTrial = undoUpdate(noteSwapped(found, "a"), NOW)!;
    expect([updateStateOf(duringTrial, undefined), duringTrial.rejected.length]).toEqual(["pinned", 1]);
  });

  test("of a trial only the pods that had their turn run the new image", () => {
    const running = noteSwapped(found, "a");
    expect(pinFor(running, "a")).toEqual({ ref: candidate.ref, isBaseline: false });
    expect(pinFor(running, "b")).toEqual({ ref: current.ref, isBaseline: true });
  });

  test("failures are retried after 1 min, 2 min, … 1 h; success forgets them", () => {
    let failing = record();
    const delays = Array.from({ length: 8 }, () => {
      failing = noteFailed(failing, "no answer", NOW);
      return (new Date(failing.nextCheckAt!).getTime() - NOW.getTime()) / 60_000;
    });
    expect(delays).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
    expect(notePulled({ ...failing, candidate }).error).toBeUndefined();
    expect(noteLookedUp(failing, { ref: current.ref, tag: "1" }, NOW, undefined).failures).toBeUndefined();
  });

  test("starts are counted during a trial only", () => {
    expect(noteStarted(record()).trial).toBeUndefined();
    expect(noteStarted(record({ trial: trial("a") })).trial?.starts).toBe(1);
  });

  test.each<[string, ImageUpdateRecord, string | undefined, string]>([
    ["not Ready yet", unknown, undefined, "waiting"],
    ["up to date", record(), undefined, "pinned"],
    ["a newer image", record({ candidate }), undefined, "new"],
    ["held", record({ candidate }), "held", "held"],
    ["on trial", record({ candidate, trial: trial("a") }), undefined, "trial"],
    ["the registry does not answer", record({ error: "no answer" }), undefined, "failed"],
  ])("state: %s", (_, given, hold, want) => {
    expect(updateStateOf(given, hold)).toBe(want as never);
  });
});

test.each<[when: string, tags: string[], range: string, present: string, want: string | undefined]>([
  ["the highest of the range", ["1.4.2", "1.4.10", "1.5.0"], "~1.4", "1.4.1", "1.4.10"],
  ["a leading v", ["v2.0.1", "v2.1.0"], "^2", "v2.0.0", "v2.1.0"],
  ["never below the present one", ["1.4.1", "1.4.2"], "~1.4", "1.4.3", undefined],
  ["no release candidate", ["1.4.3-rc.1", "1.4.2"], "~1.4", "1.4.1", "1.4.2"],
  ["the same variant", ["1.4.3", "1.4.2-alpine"], "~1.4", "1.4-alpine", "1.4.2-alpine"],
  ["no other variant", ["1.4.3-alpine"], "~1.4", "1.4.1", undefined],
  ["no tag that names several versions", ["1.4", "1", "latest"], "*", "1.4.0", undefined],
  ["a present tag without a version", ["1.4.3", "2.0.0"], "1.x", "latest", "1.4.3"],
])("%s", (_, tags, range, present, want) => expect(pickTag(tags, range, present)).toBe(want));

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

const owned = (kind: string, name: string, labels = {}) => {
  const ownerReferences = [{ apiVersion: "apps/v1", kind, name, uid: "u", controller: true }];
  return aPod({}, { name: `${name}-x`, namespace: "shop", labels, ownerReferences });
};
const ofFile = (name: string) => aPod({ nodeName: "node1" }, { name, namespace: "default" });

test.each([
  ["a pod of a file", ofFile("web-node1"), "default/web"],
  ["a pod of a file without suffix", ofFile("web"), "default/web"],
  ["a Deployment", owned("ReplicaSet", "web-5d4", { "pod-template-hash": "5d4" }), "shop/Deployment/web"],
  ["a ReplicaSet", owned("ReplicaSet", "web"), "shop/ReplicaSet/web"],
  ["a StatefulSet", owned("StatefulSet", "db"), "shop/StatefulSet/db"],
  ["nothing of a Job", owned("Job", "migrate"), undefined],
])("%s is updated as one", (_what, pod, owner) => expect(updateOwnerOf(pod)).toBe(owner));
