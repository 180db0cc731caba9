import { statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { readBoundedBytes, readTextIfReadable } from "../../base/files/bounded-read.ts";
import type { Json } from "../../base/text/json.ts";
import { writeYaml } from "../../base/text/write-yaml.ts";
import { engineClient } from "../client/engine-reader.ts";
import { importCompose, NotComposeError } from "../import/compose.ts";
import { ComposeTextError, InterpolationError, parseCompose, parseEnvFile } from "../import/compose-text.ts";
import type { Imported } from "../import/pod-parts.ts";
import { CommandError, type CommandIo, type CommandRequest, findObject, UsageError } from "../sub-command.ts";

/** Names that `docker compose` looks for. */
const COMPOSE_FILES = ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];
const MAX_FILE_BYTES = 10 * 2 ** 20;

/** `kubelet-ts import`: manifests to standard output, notes to standard error. Returns the exit code: 1 when a file was not read. */
export async function runImport(request: CommandRequest, io: CommandIo): Promise<number> {
  const { command, positionals } = request;
  const { manifests, notes, isIncomplete } =
    findObject(command, positionals[0]) === "docker" ? await importContainers(request) : importComposeFile(request);
  for (const note of notes) io.stderr(`${note}\n`);
  io.stdout(manifests.map(writeYaml).join("---\n"));
  return isIncomplete ? 1 : 0;
}

async function importContainers(request: CommandRequest): Promise<Imported> {
  const names = request.positionals.slice(1);
  if (names.length === 0) throw new UsageError("import docker needs the names of CONTAINERs: docker ps shows them");
  if (request.value("project-name") !== undefined) throw new UsageError("--project-name is for import compose");
  const { readContainers } = await import("../client/engine-reader.ts");
  const { importDocker } = await import("../import/docker.ts");
  return importDocker(await readContainers(engineClient(request), names), deviceType);
}

function deviceType(path: string): "CharDevice" | "BlockDevice" | undefined {
  const facts = statSync(path, { throwIfNoEntry: false });
  if (facts?.isCharacterDevice()) return "CharDevice";
  return facts?.isBlockDevice() ? "BlockDevice" : undefined;
}

function importComposeFile({ positionals, value }: CommandRequest): Imported {
  if (positionals.length > 2) throw new UsageError("compose takes one FILE");
  return importFile(resolve(positionals[1] ?? findComposeFile()), value("project-name"));
}

function findComposeFile(): string {
  const found = COMPOSE_FILES.find((name) => readText(name) !== undefined);
  if (found === undefined) throw new UsageError(`there is no ${COMPOSE_FILES.join(", ")} here: name a FILE`);
  return found;
}

function importFile(path: string, project: string | undefined): Imported {
  let bytes: Uint8Array;
  try {
    bytes = readBoundedBytes(path, MAX_FILE_BYTES);
  } catch (error) {
    throw new CommandError(`"${path}" cannot be read: ${(error as Error).message}`);
  }
  let file: Json;
  try {
    file = parseCompose(Buffer.from(bytes).toString("utf8"));
  } catch (error) {
    if (error instanceof ComposeTextError) throw new CommandError(`${path}:${error.message}`);
    throw error;
  }
  const directory = dirname(path);
  const outer = new Map(Object.entries(process.env) as [string, string][]);
  const environment = new Map([...parseEnvFile(readText(join(directory, ".env")) ?? "", outer), ...outer]);
  const name =
    project ??
    environment.get("COMPOSE_PROJECT_NAME") ??
    basename(directory)
      .toLowerCase()
      .replace(/[^a-z0-9_-]/g, "");
  try {
    const imported = importCompose({
      file,
      project: name,
      directory,
      environment,
      readFile: readText,
      deviceType,
    });
    const overrides = COMPOSE_FILES.map((name) => name.replace(/(?=\.ya?ml$)/, ".override")).filter(
      (name) => statSync(join(directory, name), { throwIfNoEntry: false }) !== undefined,
    );
    const isDefault = COMPOSE_FILES.includes(basename(path));
    const notes = isDefault
      ? overrides.map((name) => `${name}: is not read: give the output of \`docker compose config\``)
      : [];
    const isIncomplete = imported.isIncomplete || notes.length > 0;
    return { ...imported, notes: [...notes, ...imported.notes], isIncomplete };
  } catch (error) {
    if (error instanceof NotComposeError)
      throw new CommandError(`${path}: this is not a Compose file: ${error.message}`);
    if (error instanceof InterpolationError) throw new CommandError(`${path}: ${error.message}`);
    throw error;
  }
}

const readText = (path: string) => readTextIfReadable(path, MAX_FILE_BYTES);
