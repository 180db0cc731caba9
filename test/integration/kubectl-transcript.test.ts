import { expect, test } from "bun:test";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { kubectlClients } from "../support/kubectl.ts";
import { runTranscript, TRANSCRIPT_DIRECTORY, type TranscriptLine } from "../support/kubectl-transcript.ts";
import { startForKubectl } from "../support/local-api.ts";

/** Client and server of the recording. */
const RECORDED = "v1.20.2";

describeWithEngine("kubectl prints what it prints against kube-apiserver", () => {
  test.each(kubectlClients().filter(({ version }) => version.startsWith(RECORDED)))("$version", async (client) => {
    const node = testNode();
    const kubectl = await startForKubectl(node, client);
    const recorded: TranscriptLine[] = await Bun.file(join(TRANSCRIPT_DIRECTORY, "kube-apiserver.json")).json();
    const own = await runTranscript(client.program, kubectl.environment);
    expect(own).toEqual(recorded);
  });
});
