import type { ViewIo } from "./command-io.ts";
import { describePod } from "./describe-pod.ts";
import { findPod, inScope } from "./pod-lookup.ts";
import { openKubelet, scopeOf, selectorOf, toCommand, UsageError, ViewError, type ViewRequest } from "./run-view.ts";
import { DESCRIBE } from "./view-commands.ts";
import { findObject } from "./view-flags.ts";

/** `kubelet-ts describe pod`. Returns the exit code. */
export async function runDescribe(request: ViewRequest, io: ViewIo): Promise<number> {
  const [written, ...more] = request.positionals;
  const [kind, first] = written?.split("/", 2) ?? [];
  const object = findObject(DESCRIBE, kind);
  if (typeof object !== "string") throw new UsageError(object.problem);
  const names = first ? [first, ...more] : more;
  const matches = selectorOf(request);
  const scope = scopeOf(request);
  const { api } = await openKubelet(request);
  const [pods, events] = await Promise.all([api.pods(), api.events()]);
  const all = pods!.value;
  const found =
    names.length > 0
      ? names.map((name) => findPod(all, name, scope))
      : inScope(all, scope).filter(({ metadata }) => matches(metadata.labels ?? {}));
  const texts = found.flatMap((pod) =>
    "problem" in pod
      ? []
      : describePod(
          pod,
          events!.value.filter(({ involvedObject }) => involvedObject.uid === pod.metadata.uid),
          { now: io.now(), offsetMinutes: io.offsetMinutes },
        ),
  );
  io.stdout(texts.join("\n\n"));
  const problems = found.flatMap((pod) => ("problem" in pod ? pod.problem : []));
  if (problems.length > 0) throw new ViewError(problems.join("\n"));
  if (texts.length === 0) io.stderr("No resources found\n");
  return 0;
}

export const describeCommand = toCommand(DESCRIBE, runDescribe);
