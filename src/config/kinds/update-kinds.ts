import { parseImageUpdatePolicy } from "../../api/image-update.ts";
import { parseCronSchedule } from "../../text/cron-schedule.ts";
import { parseTimeWindow } from "../../text/time-window.ts";
import { quote, scalarKind, type ValueKind } from "./value-kind.ts";

/** `never`, `digest`, `semver:RANGE`. */
export const imageUpdatePolicy = checkedText("never|digest|semver:range", (value) =>
  parseImageUpdatePolicy(value) ? undefined : "must be never, digest, or semver: with a range as in semver:~1.4",
);

/** Five fields of cron or a macro. */
export const cronSchedule = checkedText("cron", (value) => problemOf(parseCronSchedule(value)));

/** `always`, or five fields of cron and a length. */
export const timeWindow = checkedText("window", (value) => problemOf(parseTimeWindow(value)));

const problemOf = (parsed: object) => (parsed as { problem?: string }).problem;

function checkedText(hint: string, check: (text: string) => string | undefined): ValueKind<string> {
  return scalarKind(hint, (value) => {
    const problem = check(value);
    return problem === undefined ? { value } : { problem: `${problem}, got ${quote(value)}` };
  });
}
