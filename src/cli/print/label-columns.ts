import type { ResourceItem } from "./resource-view.ts";

/** Which labels a table shows behind its other columns. */
interface LabelColumns {
  /** One column each (`-L`), in this order. */
  keys: readonly string[];
  /** One column with all of them (`--show-labels`). */
  all: boolean;
}

/** @param keys as `-L` takes them: `app,example.com/tier` */
export const toLabelColumns = (keys: string | undefined, all: boolean): LabelColumns => ({
  keys: (keys ?? "").split(",").filter(Boolean),
  all,
});

/** The key of a label without its domain, in capitals, as kubectl prints it. */
export const labelHeaders = ({ keys, all }: LabelColumns): string[] => [
  ...keys.map((key) => key.slice(key.lastIndexOf("/") + 1).toUpperCase()),
  ...(all ? ["LABELS"] : []),
];

/** The item with these labels in its row; to a watcher, another value of one is a change. */
export function withLabelCells(item: ResourceItem, { keys, all }: LabelColumns): ResourceItem {
  const { labels } = item;
  const cells = keys.map((key) => labels[key] ?? "");
  if (all) cells.push(allLabels(labels));
  return {
    ...item,
    row: (now, wide) => [...item.row(now, wide), ...cells],
    fingerprint: (wide) => JSON.stringify([item.fingerprint(wide), ...cells]),
  };
}

function allLabels(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return pairs.length > 0 ? pairs.sort().join(",") : "<none>";
}
