import { parseDuration } from "../../api/duration.ts";
import { ApiClient, type ApiObject, ApiStatusError } from "../client/api-client.ts";
import type { CommandIo } from "../command-io.ts";
import { readJsonPath } from "../print/json-path.ts";
import { CommandError, type CommandRequest, UsageError } from "../sub-command.ts";
import { readTargets } from "./delete-objects.ts";

const POLL_MS = 250;
const DEFAULT_TIMEOUT_MS = 30_000;
/** Exit code when the last edit of a pod was taken back. */
const EXIT_ROLLED_BACK = 3;

/** Whether an object is as wanted; `undefined` is an object that does not exist. */
type Condition = (object: ApiObject | undefined) => boolean;

/** `kubelet-ts wait --for=…`. Returns 0 when every object is as wanted in time. */
export async function runWait(request: CommandRequest, io: CommandIo): Promise<number> {
  const { positionals, value } = request;
  const condition = parseFor(value("for"));
  const timeoutMs = timeoutOf(value("timeout"));
  const api = await ApiClient.open(request);
  const { names } = await readTargets(api, positionals, value("namespace") ?? "default");
  if (names.length === 0) throw new UsageError("name what to wait for, as in: wait pod/web --for=condition=Ready");
  const end = Date.now() + timeoutMs;
  const problems: string[] = [];
  const rollbacks: string[] = [];
  await Promise.all(
    names.map(async ({ resource, namespace, name }) => {
      for (;;) {
        const object = await api.findObject(resource, namespace, name).catch((error: unknown) => {
          if (error instanceof ApiStatusError && error.code === 404) return undefined;
          throw error;
        });
        const rollback = condition.isOfPod ? rollbackOf(object) : undefined;
        if (rollback !== undefined) {
          rollbacks.push(
            `the last edit of ${resource.singularName || resource.name}/${name} was taken back: ${rollback}`,
          );
          return;
        }
        if (condition.isMet(object)) {
          io.stdout(`${resource.singularName || resource.name}/${object?.metadata.name ?? name} condition met\n`);
          return;
        }
        if (object === undefined) {
          problems.push(`${resource.kind} "${name}" not found`);
          return;
        }
        if (Date.now() >= end) {
          problems.push(
            `timed out after ${timeoutMs / 1000} s waiting for ${value("for")} of ${resource.name}/${name}`,
          );
          return;
        }
        await Bun.sleep(Math.min(POLL_MS, Math.max(1, end - Date.now())));
      }
    }),
  );
  if (problems.length > 0) throw new CommandError([...problems, ...rollbacks].join("\n"));
  for (const rollback of rollbacks) io.stderr(`${rollback}\n`);
  return rollbacks.length > 0 ? EXIT_ROLLED_BACK : 0;
}

/** Why an earlier revision of the pod runs: its last edit failed. */
const rollbackOf = (object: ApiObject | undefined): string | undefined =>
  conditionsOf(object).find(
    ({ type, status, reason }) => type === "ManifestLive" && status === "False" && reason === "RolledBack",
  )?.message;

/** 0 looks once, a negative duration waits a week, as kubectl does. @throws UsageError */
function timeoutOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_TIMEOUT_MS;
  const ms = parseDuration(text);
  if (ms === undefined) throw new UsageError(`--timeout must be a duration as in 30s or 5m (found "${text}")`);
  return ms < 0 ? 7 * 24 * 3600_000 : ms;
}

/**
 * `delete`, `condition=Ready`, `condition=Ready=False`, `jsonpath={.status.phase}=Running`.
 * @throws UsageError
 */
export function parseFor(text: string | undefined): { isMet: Condition; isOfPod?: true } {
  if (text === undefined) throw new UsageError("give --for=condition=Ready, --for=delete or --for=jsonpath=…");
  if (text.toLowerCase() === "delete") return { isMet: (object) => object === undefined };
  const condition = /^condition=([^=]+)(?:=(.+))?$/.exec(text);
  if (condition) {
    const [, type = "", status = "True"] = condition;
    return {
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
      isMet: (object) => {
        const found = object === undefined ? [] : read.values(object);
        return wanted === undefined ? found.length > 0 : found.some((value) => String(value) === wanted);
      },
    };
  }
  throw new UsageError(`--for must be delete, condition=TYPE[=STATUS] or jsonpath=PATH[=VALUE] (found "${text}")`);
}

interface ObjectCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
}

const conditionsOf = (object: ApiObject | undefined): ObjectCondition[] =>
  (object?.status as { conditions?: ObjectCondition[] } | undefined)?.conditions ?? [];
