/**
 * Records test/fixtures/kubectl-transcript/kube-apiserver.json again: kubectl's results of its commands against a real API
 * server, which must be new. Usage: KUBECONFIG=FILE bun scripts/record-transcript.ts KUBECTL
 */
import { runTranscript, TRANSCRIPT_FILE } from "../test/support/kubectl-transcript.ts";

const [program] = process.argv.slice(2);
const { KUBECONFIG, PATH = "", HOME = "/tmp" } = process.env;
if (program === undefined || KUBECONFIG === undefined)
  throw new Error("give kubectl, and KUBECONFIG in the environment");
const lines = await runTranscript(program, { PATH, HOME, KUBECONFIG });
await Bun.write(TRANSCRIPT_FILE, `${JSON.stringify(lines, null, 2)}\n`);
console.log(`${lines.length} commands`);
