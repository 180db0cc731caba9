import { notLive } from "../../base/api/meta.ts";
import type { PodCondition } from "../../base/api/pod.ts";
import { didYouMean } from "../../base/text/nearest-name.ts";
import { ApiClient, type ApiObject } from "../client/api-client.ts";
import { type ObjectTarget, referenceOf, selectObjects } from "../client/object-targets.ts";
import { readJsonPath } from "../print/json-path.ts";
import { CommandError, type CommandIo, type CommandRequest, durationFlag, UsageError } from "../sub-command.ts";

const USUAL = ["Ready", "Available", "Complete", "Failed"].map((type) => `condition=${type}`);
const POLL_MS = 250;
const DEFAULT_TIMEOUT_MS = 30_000;
/** Exit code when the last edit of a pod was rolled back. */
const EXIT_ROLLED_BACK = 3;

/** How the wait for one object ended. */
type Outcome = { met: string } | { rolledBack: string } | { problem: string };

/** `kubelet-ts wait --for=…`. Returns 0 when every object is as wanted in time. */
export async function runWait(request: CommandRequest, io: CommandIo): Promise<number> {
  const wanted = parseFor(request.value("for"));
  // 0 checks once, a negative duration waits a week, as kubectl does.
  const timeoutMs = durationFlag(request, "timeout") ?? DEFAULT_TIMEOUT_MS;
  const api = await ApiClient.open(request);
  const targets = await selectObjects(api, request, { takesFiles: true, verb: "wait for" });
  if (targets.length === 0) throw new CommandError("no object matches");
  const end = Date.now() + (timeoutMs < 0 ? 7 * 24 * 3600_000 : timeoutMs);
  const problems: string[] = [];
  const rollbacks: string[] = [];
  await Promise.all(
    targets.map(async (target) => {
      const outcome = await waitForOne(api, target, wanted, end);
      if ("met" in outcome) io.stdout(`${outcome.met} condition met\n`);
      else if ("rolledBack" in outcome) rollbacks.push(outcome.rolledBack);
      else problems.push(outcome.problem);
    }),
  );
  if (problems.length > 0) throw new CommandError([...problems, ...rollbacks].join("\n"));
  for (const rollback of rollbacks) io.stderr(`${rollback}\n`);
  return rollbacks.length > 0 ? EXIT_ROLLED_BACK : 0;
}

/** @param end as `Date.now()`; the object is read at least once */
async function waitForOne(
  api: ApiClient,
  { resource, namespace, name }: ObjectTarget,
  { isMet, isOfPod, toBeCreated, text }: Wanted,
  end: number,
): Promise<Outcome> {
  for (;;) {
    const object = await api.findObject(resource, namespace, name);
    const reference = referenceOf(resource, object?.metadata.name ?? name);
    const { reason, message } = (isOfPod && notLive(statusOf(object))) || {};
    if (reason === "RolledBack") return { rolledBack: `the last edit of ${reference} was rolled back: ${message}` };
    const pending = reason === "EditPending" ? message : undefined;
    if (isMet(object) && pending === undefined) return { met: reference };
    if (object === undefined && !toBeCreated) {
      // Its error names the nearest name, or the namespace that has one.
      const absent = await api.requireObject(resource, namespace, name).catch((error: unknown) => error);
      if (absent instanceof Error) return { problem: absent.message };
      continue;
    }
    if (Date.now() >= end) {
      const hint = pending === undefined ? hintOf(text, object) : `; ${pending}`;
      return { problem: `timed out waiting for ${text} of ${reference}${hint}` };
    }
    await Bun.sleep(Math.min(POLL_MS, Math.max(1, end - Date.now())));
  }
}

/** A misspelled condition never comes. */
function hintOf(text: string, object: ApiObject | undefined): string {
  const type = /^condition=([^=]+)/.exec(text)?.[1];
  const types = conditionsOf(object).map((condition) => condition.type);
  if (type === undefined) return "";
  if (types.some((known) => known.toLowerCase() === type.toLowerCase()))
    return object?.kind === "Pod" ? `; kubelet-ts explain pod ${object.metadata.name} says why` : "";
  if (types.length === 0) return "; it has no conditions";
  return `; its conditions are ${types.join(", ")}${didYouMean(type, types)}`;
}

/** The value of `--for`. */
interface Wanted {
  /** `undefined` is an object that does not exist. */
  isMet: (object: ApiObject | undefined) => boolean;
  /** It is a condition, which a pod whose last edit was rolled back does not reach. */
  isOfPod?: true;
  /** An object that does not exist may still come. */
  toBeCreated?: true;
  /** As written. */
  text: string;
}

/**
 * `create`, `delete`, `condition=Ready`, `condition=Ready=False`, `jsonpath={.status.phase}=Running`.
 * @throws UsageError
 */
export function parseFor(text: string | undefined): Wanted {
  if (text === undefined) throw new UsageError("give --for=condition=Ready, --for=delete or --for=jsonpath=…");
  if (text.toLowerCase() === "delete") return { text, isMet: (object) => object === undefined };
  if (text.toLowerCase() === "create")
    return { text, isMet: (object) => object !== undefined, toBeCreated: true as const };
  const condition = /^condition=([^=]+)(?:=(.+))?$/.exec(text);
  if (condition) {
    const [, type = "", status = "True"] = condition;
    return {
      text,
      // The condition of an earlier revision says nothing about the edit.
      ...(type.toLowerCase() !== "manifestlive" && { isOfPod: true as const }),
      isMet: (object) =>
        conditionsOf(object).some(
          (it) => it.type.toLowerCase() === type.toLowerCase() && it.status.toLowerCase() === status.toLowerCase(),
        ),
    };
  }
  const path = /^jsonpath='?(\{[^}]*\}|\.[^=]*)'?(?:=(.*))?$/.exec(text);
  if (path) {
    const [, expression = "", wanted] = path;
    const read = readJsonPath(expression);
    if ("problem" in read) throw new UsageError(`--for: ${read.problem}`);
    return {
      text,
      isMet: (object) => {
        const found = object === undefined ? [] : read.values(object);
        return wanted === undefined ? found.length > 0 : found.some((value) => String(value) === wanted);
      },
    };
  }
  const hint = didYouMean(text, ["create", "delete"]) || didYouMean(`condition=${text}`, USUAL);
  throw new UsageError(
    `--for must be create, delete, condition=TYPE[=STATUS] or jsonpath=PATH[=VALUE] (found "${text}"${hint})`,
  );
}

const statusOf = (object: ApiObject | undefined) => object?.status as { conditions?: PodCondition[] } | undefined;

const conditionsOf = (object: ApiObject | undefined): PodCondition[] => statusOf(object)?.conditions ?? [];
