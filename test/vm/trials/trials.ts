import { readdirSync, readFileSync } from "node:fs";
import { outputOf } from "../install/machine.ts";

export const CONFIG = "/etc/kubelet-ts/config.yaml";
export const CONFIGURATIONS = "/var/lib/kubelet/config";

const STATE = "/var/lib/kubelet/state";

interface Update {
  owner: string;
  state: string;
  current?: string;
  nextCheckAt?: string;
  rejected: { why: string }[];
}

/** How the image of a pod is kept up to date. */
export async function updateOf(name: string): Promise<Update | undefined> {
  const { items } = JSON.parse(await outputOf("kubelet-ts", "updates", "-o", "json")) as { items: Update[] };
  return items.find(({ owner }) => owner === `default/${name}`);
}

const stateFile = (name: string): string | undefined => {
  const file = readdirSync(STATE).find((found) => found.startsWith(name));
  return file && `${STATE}/${file}`;
};

/** The last Ready revisions. */
export const rolloutsText = (): string => readFileSync(stateFile("rollouts") ?? "/dev/null", "utf8");

export const updatesPath = (): string => stateFile("image-updates") ?? "/dev/null";
