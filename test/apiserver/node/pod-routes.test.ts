import { expect, test } from "bun:test";
import { podRoutes } from "../../../src/apiserver/node/pod-routes.ts";
import { aPod } from "../../support/builders.ts";

test.each([
  [null, undefined, ["binary a\n", "binary b\n", "closed"]],
  ["binary.k8s.io", "binary.k8s.io", ["binary a\n", "binary b\n", "closed"]],
  ["v9, base64.binary.k8s.io", "base64.binary.k8s.io", ["text YQo=", "text Ygo=", "closed"]],
])("the pieces of a log are messages of a WebSocket: offered %p", async (offered, protocol, messages) => {
  async function* chunks() {
    yield* ["a\n", "b\n"].map((line) => Buffer.from(line));
  }
  const pod = aPod();
  const [log] = podRoutes({ find: async () => pod } as never, { log: async () => ({ chunks: chunks() }) } as never);
  const request = { upgrade: "websocket", query: new URLSearchParams(), header: () => offered };
  const response = await log!.handle(request as never, {} as never);
  if (!("run" in response)) throw new Error("no WebSocket");
  const sent: string[] = [];
  const send = async (data: Uint8Array, kind = "binary") => void sent.push(`${kind} ${Buffer.from(data)}`);
  await response.run({ gone: new AbortController().signal, send, close: () => sent.push("closed") } as never);
  expect([response.protocol, sent]).toEqual([protocol, messages]);
});
