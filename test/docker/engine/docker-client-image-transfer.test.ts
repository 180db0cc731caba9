import { expect, test } from "bun:test";
import { loadedName, pullQuery, readProgress, registryAuthHeaders } from "../../../src/docker/engine/docker-client.ts";
import { DockerError, DockerProtocolError } from "../../../src/docker/engine/docker-error.ts";
import type { ProgressLine } from "../../../src/docker/engine/schemas.ts";

const DIGEST = `sha256:${"a".repeat(64)}`;

test.each([
  { reference: "busybox", want: { fromImage: "busybox", tag: "latest" } },
  { reference: "busybox:1.36", want: { fromImage: "busybox", tag: "1.36" } },
  { reference: "localhost:5000/app", want: { fromImage: "localhost:5000/app", tag: "latest" } },
  { reference: "localhost:5000/app:2", want: { fromImage: "localhost:5000/app", tag: "2" } },
  { reference: `r.io/app@${DIGEST}`, want: { fromImage: "r.io/app", tag: DIGEST } },
  { reference: `r.io:1/app:2@${DIGEST}`, want: { fromImage: "r.io:1/app", tag: DIGEST } },
])("$reference is pulled as $want", ({ reference, want }) => {
  expect(pullQuery(reference)).toEqual(want);
});

async function read(...lines: string[]): Promise<ProgressLine[]> {
  const seen: ProgressLine[] = [];
  const chunks = async function* () {
    yield new TextEncoder().encode(lines.join("\n"));
  };
  await readProgress(chunks(), "POST /images/create", (line) => void seen.push(line));
  return seen;
}

test("progress is yielded line by line", async () => {
  const seen = await read(
    '{"status":"Pulling from library/busybox","id":"latest"}',
    '{"status":"Downloading","progressDetail":{"current":5,"total":10},"progress":"[=>]","id":"abc"}',
    '{"status":"Digest: sha256:x"}',
  );
  expect(seen.map(({ id, status, progressDetail }) => [id, status, progressDetail.current])).toEqual([
    ["latest", "Pulling from library/busybox", 0],
    ["abc", "Downloading", 5],
    ["", "Digest: sha256:x", 0],
  ]);
});

test("an error inside a stream that began with 200 is an error, with and without the old field", async () => {
  const both = '{"errorDetail":{"message":"unexpected EOF"},"error":"unexpected EOF"}';
  await expect(read('{"status":"x"}', both)).rejects.toMatchObject({ status: 500, daemonMessage: "unexpected EOF" });
  const modern = '{"errorDetail":{"code":401,"message":"denied"}}';
  await expect(read(modern)).rejects.toMatchObject({ status: 401, daemonMessage: "denied" });
  await expect(read(modern)).rejects.toBeInstanceOf(DockerError);
  await expect(read("<html>")).rejects.toBeInstanceOf(DockerProtocolError);
});

test("names of loaded images", () => {
  const line = (stream: string) => ({ stream }) as ProgressLine;
  expect(loadedName(line("Loaded image: busybox:test\n"))).toBe("busybox:test");
  expect(loadedName(line(`Loaded image ID: ${DIGEST}\n`))).toBe(DIGEST);
  expect(loadedName(line("The image busybox:test already exists, renaming the old one\n"))).toBeUndefined();
});

test("credentials travel as padded base64url of JSON", () => {
  const header = registryAuthHeaders({ username: "u", password: "p>?p?" })["X-Registry-Auth"]!;
  expect(header).not.toMatch(/[+/]/);
  expect(header.length % 4).toBe(0);
  expect(JSON.parse(Buffer.from(header, "base64url").toString())).toEqual({ username: "u", password: "p>?p?" });
});
