import { join } from "node:path";

/** One command of kubectl and its result. */
export interface TranscriptLine {
  args: string[];
  code: number;
  /** Standard output without times, ages, addresses and versions of objects. */
  stdout: string;
}

/** Where the recording of a real API server is, with the manifests that its commands read. */
export const TRANSCRIPT_DIRECTORY = join(import.meta.dir, "..", "fixtures", "kubectl-transcript");

/** Commands in the order in which they build on each other. */
const TRANSCRIPT_COMMANDS: readonly string[] = [
  "create namespace lab",
  "get ns lab",
  "apply -f cm.yaml -n lab",
  "apply -f cm.yaml -n lab",
  "apply -f cm2.yaml -n lab",
  "diff -f cm2.yaml -n lab",
  "get cm -n lab",
  "apply -f sec.yaml -n lab",
  "get secret sec -n lab",
  'patch cm conf -n lab --type=merge -p {"data":{"a":"9"}}',
  'patch cm conf -n lab --type=merge -p {"data":{"a":"9"}}',
  'patch cm conf -n lab --type=json -p [{"op":"remove","path":"/data/nope"}]',
  'patch cm conf -n lab -p {"data":{"a":5}}',
  'patch cm nope -n lab -p {"data":{"a":"5"}}',
  "label cm conf -n lab x=y",
  "label cm conf -n lab x=y",
  "label cm conf -n lab x=z",
  "label cm conf -n lab x=z --overwrite",
  "label cm conf -n lab x-",
  "label cm conf -n lab x-",
  "annotate cm conf -n lab n=1",
  "get cm -n lab -l app=a",
  "get cm -n lab -l foo=bar",
  "get cm -n lab --field-selector metadata.name=conf -o name",
  "get cm -n lab --field-selector foo=bar",
  "get cm -n lab --show-labels",
  "get cm conf nope -n lab",
  "get nosuch",
  "get cm conf -n lab -o jsonpath={.data.a}",
  "get cm conf -n lab -o custom-columns=N:.metadata.name,K:.kind",
  "create cm conf -n lab",
  "create cm lit -n lab --from-literal=k=v",
  "create secret generic s2 -n lab --from-literal=k=v",
  "create -f cm.yaml -n lab",
  "create -f bad.yaml -n lab",
  "create -f badpod.yaml -n lab",
  "apply -f typo.yaml -n lab",
  "apply -f typo.yaml -n lab --validate=false",
  "create -f cm.yaml -n nonamespace",
  "apply --server-side -f cm.yaml -n lab",
  "apply --server-side --force-conflicts -f cm2.yaml -n lab",
  "replace -f cm.yaml -n lab",
  "replace -f nope.yaml -n lab",
  "apply -f dep.yaml -n lab",
  "get deploy -n lab",
  "get deploy -n lab -o wide",
  "scale deploy dep -n lab --replicas=0",
  "set image deploy/dep -n lab c=busybox:1.34",
  "rollout pause deploy/dep -n lab",
  "rollout resume deploy/dep -n lab",
  "expose deploy dep -n lab --port=80",
  "run p1 --image=busybox:1.35 -n lab --dry-run=server",
  "run p1 --image=busybox:1.35 -n lab --dry-run=server -o name",
  "run P_1 --image=busybox:1.35 -n lab",
  "wait --for=condition=Ready pod/nope -n lab --timeout=1s",
  "wait --for=delete cm/nope -n lab --timeout=1s",
  "delete cm lit -n lab",
  "delete cm lit -n lab",
  "delete cm lit -n lab --ignore-not-found",
  "delete cm -n lab -l app=a --dry-run=server",
  "auth can-i create pods",
  "auth can-i create pods --subresource=exec",
  "auth can-i * *",
  "get --raw /healthz",
  "get --raw /version/nope",
  "get events -n lab",
  "get pods -n lab",
  "get node nope",
  "logs nope -n lab",
  "exec nope -n lab -- true",
  "attach nope -n lab",
  "describe pod nope -n lab",
  "edit cm nope -n lab",
  "cordon nope",
  "delete ns lab --wait=false",
];

/** Runs the commands in order. @param program kubectl, with KUBECONFIG in the environment */
export async function runTranscript(program: string, environment: Record<string, string>): Promise<TranscriptLine[]> {
  const lines: TranscriptLine[] = [];
  for (const command of TRANSCRIPT_COMMANDS) {
    const args = command.split(" ");
    const child = Bun.spawn([program, ...args], {
      cwd: TRANSCRIPT_DIRECTORY,
      env: environment,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, , code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    lines.push({ args, code, stdout: normalize(stdout) });
  }
  return lines;
}

/** Columns are as wide as their cells. */
const normalize = (text: string): string =>
  text
    .replaceAll(/\/tmp\/(LIVE|MERGED)-\d+/g, "$1")
    .replaceAll(/\d{4}-\d\d-\d\d[T ][\d:.]+( ?\+0000)?Z?/g, "TIME")
    .replaceAll(/(resourceVersion|uid): .*/g, "$1: X")
    .replaceAll(/(?<= )\d+(m\d*)?s(?=\s|$)/g, "AGE")
    .replaceAll(/ +(?=\n|$)/g, "")
    .replaceAll(/ {2,}/g, "  ");
