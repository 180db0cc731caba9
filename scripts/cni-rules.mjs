/** Firewall rules of CNI plugins (bridge with ipMasq, portmap, firewall) that tests left behind. */
import { spawnSync } from "node:child_process";

/**
 * Removes the rules of the CNI networks with these names, and their chains. A port of the host whose rule stays would lead
 * to an address that no longer exists: whatever listens on that port later cannot be reached.
 * @param {(networkName: string) => boolean} isStale
 * @returns {number} rules removed; 0 where there is no iptables
 */
export function removeCniRules(isStale) {
  const saved = spawnSync("iptables-save", { encoding: "utf8" });
  if (saved.status !== 0) return 0;
  const script = planRuleRemoval(saved.stdout, isStale);
  if (script === "") return 0;
  const { status, stderr } = spawnSync("iptables-restore", ["--noflush"], { input: script, encoding: "utf8" });
  if (status !== 0) throw new Error(`iptables-restore: ${stderr.trim()}`);
  return script.split("\n").filter((line) => line.startsWith("-D ")).length;
}

/**
 * @param {string} saved what iptables-save prints
 * @param {(networkName: string) => boolean} isStale
 * @returns {string} input of `iptables-restore --noflush`; empty when there is nothing to remove
 */
export function planRuleRemoval(saved, isStale) {
  const tables = saved.split(/^\*/m).slice(1).map(readTable);
  const named = tables.flatMap(({ rules }) => rules.filter((rule) => isOfStale(rule, isStale)));
  // Rules of the firewall plugin and rules inside the chains of portmap have no name.
  const addresses = new Set(named.flatMap((rule) => /^-A POSTROUTING -s (\S+)/.exec(rule)?.[1] ?? []));
  const chains = new Set(named.flatMap((rule) => / -j (CNI-(?:DN-)?[0-9a-f]{20,})$/.exec(rule)?.[1] ?? []));
  const parts = tables.map(({ name, rules, chains: known }) => {
    const gone = rules.filter(
      (rule) =>
        (named.includes(rule) && !chains.has(rule.split(" ")[1])) ||
        (rule.startsWith("-A CNI-FORWARD ") && addresses.has(/ -[sd] (\S+)/.exec(rule)?.[1] ?? "")),
    );
    const empty = known.filter((chain) => chains.has(chain));
    const lines = [
      ...gone.map((rule) => rule.replace(/^-A/, "-D")),
      ...empty.map((chain) => `-F ${chain}`),
      ...empty.map((chain) => `-X ${chain}`),
    ];
    return lines.length === 0 ? "" : [`*${name}`, ...lines, "COMMIT", ""].join("\n");
  });
  return parts.join("");
}

/** @param {string} text one table, without its asterisk */
function readTable(text) {
  const lines = text.split("\n");
  return {
    name: lines[0],
    rules: lines.filter((line) => line.startsWith("-A ")),
    chains: lines.flatMap((line) => /^:(\S+) -/.exec(line)?.[1] ?? []),
  };
}

const isOfStale = (rule, isStale) => {
  const name = /--comment "(?:dnat )?name: \\"([^\\"]+)\\" id: /.exec(rule)?.[1];
  return name !== undefined && isStale(name);
};
