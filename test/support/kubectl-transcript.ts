import { join } from "node:path";

/** One command of kubectl and its result. */
interface TranscriptLine {
  args: string[];
  code: number;
  /** Standard output without times, ages, addresses and versions of objects. */
  stdout: string;
}

/** Manifests that the commands read. */
const DIRECTORY = join(import.meta.dir, "..", "fixtures", "kubectl-transcript");

/** The recording of a real API server: commands in the order in which they build on each other. */
export const TRANSCRIPT_FILE = join(DIRECTORY, "kube-apiserver.json");

export const readTranscript = (): Promise<TranscriptLine[]> => Bun.file(TRANSCRIPT_FILE).json();

/** Runs the recorded commands in order. @param program kubectl, with KUBECONFIG in the environment */
export async function runTranscript(program: string, env: Record<string, string>): Promise<TranscriptLine[]> {
  const lines: TranscriptLine[] = [];
  for (const { args } of await readTranscript()) {
    const child = Bun.spawn([program, ...args], {
      cwd: DIRECTORY,
      env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
    });
    const [stdout, code] = await Promise.all([child.stdout.text(), child.exited]);
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
