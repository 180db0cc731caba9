import { expect, test } from "bun:test";
import type { ProcessSession } from "../../../src/base/model/container-access.ts";
import { logWhile, shellWhile } from "../../../src/server/page/session-streams.ts";

const bytes = (text: string) => Buffer.from(text);

test("a log ends with the session", async () => {
  let isAllowed = true;
  async function* lines() {
    yield bytes("a");
    isAllowed = false;
    yield bytes("b");
  }
  const read: string[] = [];
  for await (const chunk of logWhile(lines(), () => isAllowed)) read.push(Buffer.from(chunk).toString());
  expect(read).toEqual(["a"]);
});

function aShell(output: ProcessSession["output"]) {
  const written: string[] = [];
  let closes = 0;
  const session: ProcessSession = {
    output,
    write: async (data) => void written.push(Buffer.from(data).toString()),
    endInput: () => {},
    resize: async () => {},
    exitCode: async () => 0,
    close: async () => void closes++,
  };
  return { session, written, closes: () => closes };
}

test("a shell takes no input after its session has expired: its process is killed", async () => {
  let isAllowed = true;
  const { session, written, closes } = aShell((async function* () {})());
  const shell = shellWhile(session, () => isAllowed);
  await shell.write(bytes("ls"));
  isAllowed = false;
  await shell.write(bytes("rm"));
  expect({ written, closes: closes() }).toEqual({ written: ["ls"], closes: 1 });
});

test("a shell shows no output after its session has expired, and says why it ends", async () => {
  let isAllowed = true;
  const { session } = aShell(
    (async function* () {
      yield { stream: "stdout" as const, data: bytes("a") };
      isAllowed = false;
      yield { stream: "stdout" as const, data: bytes("b") };
    })(),
  );
  const shown: string[] = [];
  const read = async () => {
    for await (const { data } of shellWhile(session, () => isAllowed).output) shown.push(Buffer.from(data).toString());
  };
  expect(await read().catch((error) => error.message)).toMatch(/session of the page has expired/);
  expect(shown).toEqual(["a"]);
});
