import { expect, test } from "bun:test";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { kubectlClients, startForKubectl } from "../support/kubectl.ts";
import { readTranscript, runTranscript } from "../support/kubectl-transcript.ts";

/** Client and server of the recording. */
const RECORDED = kubectlClients().filter(({ version }) => version.startsWith("v1.20.2"));

describeWithEngine("kubectl prints what it prints against kube-apiserver", () => {
  test.each(RECORDED)("$version", async (client) => {
    const kubectl = await startForKubectl(testNode(), client);
    expect(await runTranscript(client.program, kubectl.environment)).toEqual(await readTranscript());
  });
});
