import { isRecord, type Json } from "../../base/text/json.ts";
import { FILE_ADVICE, toServiceManifests } from "./compose-service.ts";
import { interpolateAll } from "./compose-text.ts";
import { type DeviceType, type Imported, ImportNotes, toDnsLabel } from "./pod-parts.ts";

interface ComposeInput {
  /** The parsed Compose file. */
  file: Json;
  /** Name of the project when the file has none: that of its directory. */
  project: string;
  /** Base of relative paths; absolute. */
  directory: string;
  /** Variables of `.env` and of the process, for interpolation and variables without a value. */
  environment: ReadonlyMap<string, string>;
  /** @returns undefined when the file cannot be read */
  readFile(path: string): string | undefined;
  deviceType: DeviceType;
}

/** The text is not a Compose file. */
export class NotComposeError extends Error {
  override readonly name = "NotComposeError";
}

/**
 * Writes a pod for each service of a Compose file. Several services are put into a Docker network of the name of the
 * project, in which they reach each other by their names. Source: compose specification.
 * @throws NotComposeError, InterpolationError
 */
export function importCompose({
  file,
  project: given,
  directory,
  environment,
  readFile,
  deviceType,
}: ComposeInput): Imported {
  if (!isRecord(file) || !isRecord(file.services)) throw new NotComposeError("it has no map `services`");
  const notes = new ImportNotes();
  const missing = new Set<string>();
  const content = interpolateAll(file, environment, (name) => missing.add(name)) as { readonly [key: string]: Json };
  for (const name of missing)
    notes.add(`\${${name}}`, "has no value, neither in .env nor in the environment: it is empty");
  const services = content.services as { readonly [name: string]: Json };
  const project = typeof content.name === "string" ? content.name : given;
  const names = Object.keys(services);
  const network = names.length > 1 ? toDnsLabel(project) : undefined;
  const context = {
    project,
    directory,
    environment,
    readFile,
    deviceType,
    services,
    volumes: mapAt(content, "volumes"),
    configs: mapAt(content, "configs"),
    secrets: mapAt(content, "secrets"),
    claims: new Set<string>(),
    ...(network !== undefined && { network }),
  };
  for (const key of Object.keys(content)) {
    const isRead = ["services", "name", "version", "volumes", "configs", "secrets", "networks"].includes(key);
    if (!isRead && !key.startsWith("x-")) notes.add(key, FILE_ADVICE[key] ?? "is not carried over");
  }
  const manifests = names.flatMap((name) => {
    const service = services[name];
    if (!isRecord(service)) throw new NotComposeError(`services.${name} is not a map`);
    return toServiceManifests(name, service, context, notes);
  });
  const first = network === undefined ? [] : [`create the network of the pods first: docker network create ${network}`];
  return { manifests, notes: [...first, ...volumeNotes(context.claims), ...notes.lines] };
}

function volumeNotes(claims: ReadonlySet<string>): string[] {
  if (claims.size === 0) return [];
  const names = [...claims].join(", ");
  return [
    `the pods use the Docker volumes ${names}: data that docker compose left there stays; one that is missing is made empty`,
  ];
}

const mapAt = (content: { readonly [key: string]: Json }, key: string): { readonly [name: string]: Json } => {
  const value = content[key];
  return isRecord(value) ? value : {};
};
