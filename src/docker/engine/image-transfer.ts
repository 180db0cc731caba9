import * as v from "valibot";
import { DockerError, DockerProtocolError } from "./docker-error.ts";
import { type ProgressLine, ProgressLineSchema } from "./image-schema.ts";
import { jsonLines } from "./stream-frames.ts";

/** Credentials for a registry, as Docker's X-Registry-Auth carries them. Never logged. */
export interface RegistryAuth {
  username?: string;
  password?: string;
  /** base64 of `user:password`; Docker's own configuration has it instead of the two. */
  auth?: string;
  /** A refresh token instead of a password. */
  identitytoken?: string;
  /** A bearer token for the registry itself. */
  registrytoken?: string;
  serveraddress?: string;
}

/** base64 for URLs, padded: without the padding the engine reads no credentials at all, and says nothing. */
export const registryAuthHeader = (auth: RegistryAuth): string =>
  Buffer.from(JSON.stringify(auth)).toString("base64").replaceAll("+", "-").replaceAll("/", "_");

/**
 * Reads a pull's or a load's progress to the end.
 * @throws DockerError for an error inside the stream; DockerProtocolError.
 */
export async function readProgress(
  chunks: AsyncIterable<Uint8Array>,
  operation: string,
  onLine: (line: ProgressLine) => void,
): Promise<void> {
  for await (const text of jsonLines(chunks)) {
    let line: ProgressLine;
    try {
      line = v.parse(ProgressLineSchema, JSON.parse(text));
    } catch (cause) {
      throw new DockerProtocolError(operation, `no progress: ${text.slice(0, 200)}`, { cause });
    }
    const problem = line.errorDetail?.message || line.error;
    if (problem) throw new DockerError(line.errorDetail?.code || 500, operation, problem);
    onLine(line);
  }
}

/** `fromImage` and `tag` of a pull. Without a tag the engine would fetch every tag there is, so `latest` is meant. */
export function pullQuery(reference: string): { fromImage: string; tag: string } {
  const at = reference.indexOf("@");
  if (at >= 0) {
    // With both a tag and a digest the digest decides; the engine does not take the two together.
    const name = reference.slice(0, at);
    return { fromImage: withoutTag(name), tag: reference.slice(at + 1) };
  }
  const fromImage = withoutTag(reference);
  return { fromImage, tag: reference.slice(fromImage.length + 1) || "latest" };
}

function withoutTag(name: string): string {
  const colon = name.indexOf(":", name.lastIndexOf("/") + 1);
  return colon < 0 ? name : name.slice(0, colon);
}

/** Names and ids out of a load's `Loaded image: x:1` and `Loaded image ID: sha256:…`. */
export function loadedName(line: ProgressLine): string | undefined {
  return /^Loaded image(?: ID)?: (\S+)/.exec(line.stream)?.[1];
}
