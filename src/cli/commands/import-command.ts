import { readdirSync, type Stats, statSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import * as v from "valibot";
import { readTextIfExists } from "../../base/files/whole-file.ts";
import { messageOf, unlessFailed } from "../../base/text/error-message.ts";
import { writeYaml } from "../../base/text/write-yaml.ts";
import type { DockerHost } from "../../docker/docker-host.ts";
import { LABEL } from "../../docker/labels.ts";
import { engineOf } from "../client/engine-reader.ts";
import { importCompose } from "../import/compose.ts";
import { ComposeError, parseEnvFile } from "../import/compose-text.ts";
import type { MachineInput } from "../import/compose-volumes.ts";
import { type DockerContainer, importDocker } from "../import/docker.ts";
import { InspectedContainerSchema, InspectedImageSchema } from "../import/docker-settings.ts";
import type { HostDevice, Imported } from "../import/pod-parts.ts";
import { CommandError, type CommandIo, type CommandRequest, findObject, UsageError } from "../sub-command.ts";

/** Names that `docker compose` looks for. */
const COMPOSE_FILES = ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];
const MAX_FILE_BYTES = 2 ** 20;
/** Files that a Compose file names, together; each counts as at least {@link MIN_FILE_BYTES}. */
const MAX_FILES_BYTES = 16 * 2 ** 20;
const MIN_FILE_BYTES = 2 ** 14;

/** `kubelet-ts import`: manifests to standard output, notes to standard error. */
export async function runImport(request: CommandRequest, io: CommandIo): Promise<number> {
  const { command, positionals } = request;
  const [first = ""] = positionals;
  if (/\.ya?ml$/.test(first)) throw new UsageError(`say what the file is: kubelet-ts import compose ${first}`);
  try {
    const isDocker = findObject(command, first) === "docker";
    const { manifests, notes } = isDocker ? await importContainers(request) : importComposeFiles(request);
    for (const note of notes) io.stderr(`${note}\n`);
    io.stdout(manifests.map((manifest) => writeYaml(manifest)).join("---\n"));
    return 0;
  } catch (error) {
    if (!(error instanceof ComposeError)) throw error;
    throw new CommandError(`${error.position || `${positionals.join(" ")}:`} ${error.message}`);
  }
}

async function importContainers(request: CommandRequest): Promise<Imported> {
  const names = request.positionals.slice(1);
  if (names.length === 0) throw new UsageError("import docker needs the names of CONTAINERs: docker ps shows them");
  const misplaced = (["file", "profile", "project-name"] as const).find((flag) => request.value(flag) !== undefined);
  if (misplaced !== undefined) throw new UsageError(`--${misplaced} is for import compose`);
  const [engine, signal] = [engineOf(request), AbortSignal.timeout(INSPECT_TIMEOUT_MS)];
  // Two names of one container count once.
  const found = new Map<string, DockerContainer>();
  for (const name of names) {
    const one = await readContainer(engine, name, signal);
    found.set(one.container.Id, one);
  }
  return importDocker([...found.values()], findDevices, hostGateway());
}

const INSPECT_TIMEOUT_MS = 15_000;

/**
 * Inspects a container and its image; changes nothing.
 * @param name its name, its id or a prefix of that
 * @throws CommandError, EngineError
 */
async function readContainer(engine: DockerHost, name: string, signal: AbortSignal): Promise<DockerContainer> {
  const raw = await engine.inspectContainer(name, signal);
  if (raw === undefined) throw new CommandError(`there is no container "${name}": docker ps -a shows all`);
  const container = v.parse(InspectedContainerSchema, raw);
  const pod = container.Config.Labels[LABEL.podName];
  if (pod !== undefined)
    throw new CommandError(`container "${name}" is one of pod "${pod}": it has a manifest already`);
  const imageOf = async (reference: string) => {
    const response = reference === "" ? undefined : await engine.inspectImage(reference, signal);
    return response && v.parse(InspectedImageSchema, response);
  };
  const [image, current] = [await imageOf(container.Image), await imageOf(container.Config.Image)];
  return { container, ...(image && { image }), ...(current && { currentImageId: current.Id }) };
}

/** Devices of one directory that are given to a container. */
const MAX_DEVICES = 256;

/** The device of that path, or those below a directory as Docker gives them. */
function findDevices(path: string): HostDevice[] {
  const typeOf = (
    facts: Pick<Stats, "isCharacterDevice" | "isBlockDevice"> | undefined,
  ): HostDevice["type"] | undefined =>
    facts?.isCharacterDevice() ? "CharDevice" : facts?.isBlockDevice() ? "BlockDevice" : undefined;
  const facts = statSync(path, { throwIfNoEntry: false });
  if (!facts?.isDirectory()) {
    const type = typeOf(facts);
    return type === undefined ? [] : [{ path, type }];
  }
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries
    .flatMap((entry) => {
      const type = typeOf(entry);
      return type === undefined ? [] : [{ path: join(entry.parentPath, entry.name), type }];
    })
    .slice(0, MAX_DEVICES);
}

/** The address that Docker gives for `host-gateway`, unless dockerd has `--host-gateway-ip`: that of its own bridge. */
const hostGateway = (): string | undefined =>
  networkInterfaces().docker0?.find(({ family }) => family === "IPv4")?.address;

function importComposeFiles({ positionals, value, values }: CommandRequest): Imported {
  const given = [...positionals.slice(1), ...values("file")];
  const files = (given.length > 0 ? given : findComposeFiles()).map((file) => resolve(file));
  const directory = dirname(files[0]!);
  const outer = new Map(Object.entries(process.env) as [string, string][]);
  let bytesLeft = MAX_FILES_BYTES;
  const readFile: MachineInput["readFile"] = (file, mayBeMissing) => {
    const text = readText(file, mayBeMissing);
    bytesLeft -= Math.max(text?.length ?? 0, MIN_FILE_BYTES);
    if (bytesLeft < 0) throw new ComposeError(`it names files of more than ${MAX_FILES_BYTES} bytes in all`);
    return text;
  };
  const environment = new Map([...parseEnvFile(readText(join(directory, ".env"), true) ?? "", outer), ...outer]);
  const profiles = value("profile");
  if (profiles !== undefined) environment.set("COMPOSE_PROFILES", profiles);
  const ownName = basename(directory).toLowerCase();
  const named = value("project-name") ?? environment.get("COMPOSE_PROJECT_NAME");
  const project = named ?? ownName.replace(/[^a-z0-9_-]/g, "");
  return importCompose({ files, project, directory, environment, readFile, findDevices, hostGateway: hostGateway() });
}

/** The file that `docker compose` would read here, and the one that overrides it. */
function findComposeFiles(): string[] {
  const findFile = (names: readonly string[]) => names.find((name) => statSync(name, { throwIfNoEntry: false }));
  const found = findFile(COMPOSE_FILES);
  if (found === undefined) throw new UsageError(`there is no ${COMPOSE_FILES.join(", ")} here: name a FILE`);
  const override = findFile(COMPOSE_FILES.map((name) => name.replace(/(?=\.ya?ml$)/, ".override")));
  return override === undefined ? [found] : [found, override];
}

/** {@link MachineInput.readFile}. A directory `.env` counts as missing, as for Docker: tools of Python make such ones. */
function readText(path: string, mayBeMissing = false): string | undefined {
  try {
    return readTextIfExists(path, MAX_FILE_BYTES);
  } catch (error) {
    if (mayBeMissing && !unlessFailed(() => statSync(path))?.isDirectory())
      throw new ComposeError(`"${path}" cannot be read: ${messageOf(error)}`);
    return undefined;
  }
}
