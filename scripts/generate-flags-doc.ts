import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { defaultText } from "../src/cli/help.ts";
import { SUBJECTS } from "../src/config/option-row.ts";
import {
  DEFAULT_KUBELET_OPTIONS,
  type FlagRow,
  OPTION_TABLE,
  type OptionRow,
  SHOWN_ROWS,
} from "../src/config/option-table.ts";

/** docs/flags.md; a test holds the file to it. */
export function renderFlagsDoc(): string {
  return `${[
    "# Flags and configuration",
    "",
    "<!-- Generated from src/config/option-rows by `bun scripts/generate-flags-doc.ts`: edit there. -->",
    "",
    "Flags keep the kubelet's names and units. `--flag value` and `--flag=value` are the same; booleans are written",
    "`--flag` or `--flag=false`; a repeated list adds up, of anything else the last counts. Durations are written as Go",
    "does: `20s`, `1m30s`. An unknown flag ends the start with exit code 2 and the nearest known name; a deprecated one",
    "works and warns.",
    "",
    "Each flag can also be an environment variable, `KUBELET_TS_MAX_PODS` for `--max-pods`: it overrides the configuration file and",
    "yields to the flag.",
    "",
    "Every flag but `--config` and `--config-dir` can be set in a configuration file by the field in the next column, and the file in",
    "a directory of drop-ins (`*.conf`). What counts: defaults < file < drop-ins in the order of their names < environment < flags.",
    "`kubelet-ts config` shows the outcome and where each value comes from. Fields under `kubeletTs` are ours; all others",
    "are those of upstream's `kubelet.config.k8s.io/v1beta1` KubeletConfiguration.",
    "",
    "```yaml",
    "apiVersion: kubelet.config.k8s.io/v1beta1",
    "kind: KubeletConfiguration",
    "staticPodPath: /etc/kubernetes/manifests",
    "maxPods: 50",
    "kubeletTs:",
    "  imagesDir: /srv/images",
    "```",
    "",
    "With a configuration file the read-only port is off unless `readOnlyPort` names it, as upstream. In a file 0 and the",
    "empty string mean the default, except where the tables say otherwise by their default. Paths in a file are relative to it.",
    ...SUBJECTS.flatMap((subject) => subjectTable(subject)),
    "",
    "## Old names",
    "",
    "| Flag | Now |",
    "| --- | --- |",
    ...OPTION_TABLE.filter((row): row is OptionRow => row.is === "option" && row.deprecated !== undefined).map(
      (row) => `| \`--${row.flag}\` | ${row.deprecated} |`,
    ),
    "",
    "## Accepted without effect",
    "",
    "They are known to the kubelet and have no meaning here; using one warns.",
    "",
    "| Why | Flags and fields |",
    "| --- | --- |",
    ...byReason("inapplicable"),
    "",
    "## Refused",
    "",
    "They ask for something that cannot be had; only empty or harmless values are taken.",
    "",
    "| Why | Flags and fields |",
    "| --- | --- |",
    ...byReason("refused"),
  ].join("\n")}\n`;
}

function subjectTable(subject: string): string[] {
  const rows = SHOWN_ROWS.filter((row) => row.subject === subject);
  return [
    "",
    `## ${subject}`,
    "",
    "| Flag | Field | Default | What it does |",
    "| --- | --- | --- | --- |",
    ...rows.map((row) => {
      const names = [
        row.flag === undefined ? "" : `\`--${row.flag}\``,
        row.short === undefined ? "" : `\`-${row.short}\``,
      ];
      const hint = row.kind.hint === "" || row.flag === undefined ? "" : ` ${escapeCell(row.kind.hint)}`;
      const flag = names.filter(Boolean).join(", ") + hint;
      const field = row.field === undefined ? "" : `\`${row.field}\``;
      return `| ${flag} | ${field} | ${escapeCell(shownDefault(row))} | ${escapeCell(row.description)} |`;
    }),
  ];
}

function shownDefault(row: (typeof SHOWN_ROWS)[number]): string {
  const isFalse = row.is === "option" && row.defaultText === undefined && DEFAULT_KUBELET_OPTIONS[row.option] === false;
  return isFalse ? "false" : defaultText(row);
}

function byReason(is: "inapplicable" | "refused"): string[] {
  const reasons = new Map<string, string[]>();
  for (const row of OPTION_TABLE) {
    if (row.is === is) reasons.set(row.why, [...(reasons.get(row.why) ?? []), namesOf(row)]);
  }
  return [...reasons].map(([why, names]) => `| ${escapeCell(why)} | ${names.join(", ")} |`);
}

function namesOf({ flag, field }: FlagRow): string {
  return [flag === undefined ? "" : `\`--${flag}\``, field === undefined ? "" : `\`${field}\``]
    .filter(Boolean)
    .join(" / ");
}

const escapeCell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("<", "&lt;");

if (import.meta.main) writeFileSync(join(import.meta.dir, "..", "docs", "flags.md"), renderFlagsDoc());
