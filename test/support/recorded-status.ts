import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { KubeletProcess } from "./kubelet-process.ts";
import type { PodItem, TestNode } from "./test-node.ts";

const STATUS = join(import.meta.dir, "..", "fixtures", "oracle", "status");

/** One pod of the recorded cases of category B: its item of /pods, and each event once as `Type Reason Message`. */
export interface RecordedStatus {
  /** `<case>/<pod>`. */
  name: string;
  podName: string;
  manifest: string;
  pod: PodItem;
  events: string[];
}

/** Every recorded pod, with the manifest it was made from. */
export const RECORDED_STATUSES: RecordedStatus[] = readdirSync(STATUS).flatMap((folder) => {
  const files = readdirSync(join(STATUS, folder));
  return files
    .filter((file) => file.endsWith(".json"))
    .map((file) => {
      const podName = file.replace(/\.json$/, "");
      const read = (name: string) => readFileSync(join(STATUS, folder, name), "utf8");
      const recorded = JSON.parse(read(file)) as Pick<RecordedStatus, "pod" | "events">;
      return { name: `${folder}/${podName}`, podName, manifest: read(`manifest-${podName}.yaml`), ...recorded };
    });
});

/** Where the recording's addresses are in this run. */
export interface Places {
  node: TestNode;
  /** Recorded text to its replacement, e.g. `127.0.0.1:5000` to a registry's address. */
  addresses: ReadonlyMap<string, string>;
}

/** A recorded manifest for this run. */
export function toManifest(text: string, { addresses }: Places): string {
  let manifest = text;
  for (const [recorded, here] of addresses) manifest = manifest.replaceAll(recorded, here);
  return manifest;
}

/** Events of one pod so far, from a kubelet that logs JSON; each once. */
export function eventsOf(kubelet: KubeletProcess, podName: string, places: Places): string[] {
  const events = new Set<string>();
  for (const line of kubelet.log.split("\n")) {
    if (!line.startsWith("{")) continue;
    const { msg = "", level, pod } = JSON.parse(line) as { msg?: string; level: string; pod?: string };
    const match = /^([A-Z][A-Za-z]+): (.*)$/s.exec(msg);
    if (!match || !pod?.endsWith(`/${podName}-${places.node.name}`)) continue;
    events.add(`${level === "warn" ? "Warning" : "Normal"} ${match[1]} ${match[2]}`);
  }
  return [...events].map((event) => toComparable(event, places));
}

/** Values that differ from run to run, replaced by the same words on both sides. */
export function toComparable<T>(value: T, { node, addresses }: Places): T {
  let text = JSON.stringify(value).replaceAll(node.name, "node1");
  for (const [recorded, here] of addresses) text = text.replaceAll(here, recorded);
  text = text
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "<time>")
    .replace(/docker:\/\/(<container-id:[^>]*>|[0-9a-f]{64})/g, "docker://<container>")
    .replace(/docker:\/\/<image-id:[^>]*>|docker:\/\/sha256:[0-9a-f]{64}/g, "docker://<image>")
    .replace(/@sha256:(<[^>]*>|[0-9a-f]{64})/g, "@sha256:<digest>")
    .replace(/<pod-ip:[^>]*>/g, "<pod-ip>")
    .replace(/"(podIP|ip)":"[\d.]+"/g, '"$1":"<pod-ip>"')
    .replace(/\((<pod-uid:[^>]*>|[0-9a-f]{32})\)/g, "(<uid>)")
    .replace(/ in [\d.]+m?s"/g, ' in <time>"')
    // The number of crashes by then depends on the time of the reading; the delays have their own test.
    .replace(/back-off \w+ restarting/g, "back-off <delay> restarting");
  return JSON.parse(text) as T;
}
