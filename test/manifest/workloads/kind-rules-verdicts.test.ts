import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readManifest } from "../../../src/manifest/read-manifest.ts";

interface Verdict {
  /** Base object and mutation. */
  id: string;
  /** The API server of Kubernetes 1.20.2 accepted it. */
  ok: boolean;
  object: unknown;
}

const FIXTURE = join(import.meta.dir, "../../fixtures/oracle/workload-verdicts.jsonl.gz");

/** Verdicts that are not followed, each with the reason. */
const EXCEPTIONS: readonly [RegExp, string][] = [
  [/^StatefulSet:.*template\.spec/, "the pods could not be created: upstream does not validate this template"],
  [
    /^StatefulSet:.*volumeClaimTemplates/,
    "the claims could not be created: upstream does not validate these templates",
  ],
  [
    /^CronJob:spec\.jobTemplate\.metadata\.labels/,
    "the Jobs could not be created: upstream does not validate these labels",
  ],
  [/:spec\.ports\.0\.nodePort=(-1|65536)$/, "no port is allocated in a dry run; a real one is refused"],
  [/^Job:spec\.ttlSecondsAfterFinished=-1$/, "refused since 1.21, where the field is in effect"],
  [/^JobManual:metadata\.name=.*64$/, "pods carry the name of the Job as a label"],
  [/^JobManual:.*spec\.selector/, "an empty selector would select every pod"],
  [/matchExpressions\.0\.values\.0=/, "refused by later versions"],
  [/:generateName$/, "a file needs a name that stays the same"],
  [/:ephemeral$/, "ephemeral containers are added to pods that run"],
  [/^Job:controller-uid label$/, "the label of an exported Job is replaced"],
  [/^CronJob:schedule (\*-5|\+1|1,|,1) /, "slips that robfig/cron reads by chance"],
  [/^CronJob:schedule @every -1h$/, "robfig/cron makes it one second"],
  [/ReadWriteOncePod$/, "a mode of later versions"],
];

const verdicts = new TextDecoder()
  .decode(Bun.gunzipSync(readFileSync(FIXTURE)))
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Verdict);

const isAccepted = (object: unknown): boolean => {
  const { findings } = readManifest(Buffer.from(JSON.stringify(object)), { file: "f", nodeName: "n", source: "file" });
  return !findings.some(({ severity }) => severity === "error");
};

test("workloads, Services and volumes get the verdict of the API server", () => {
  const others = verdicts.filter(({ ok, object }) => isAccepted(object) !== ok).map(({ id }) => id);
  expect(others.filter((id) => !EXCEPTIONS.some(([pattern]) => pattern.test(id)))).toEqual([]);
  expect(EXCEPTIONS.filter(([pattern]) => !others.some((id) => pattern.test(id)))).toEqual([]);
  expect(verdicts.length - others.length).toBeGreaterThan(2800);
});
