import { isRecord, type Json } from "../../base/text/json.ts";
import { FILE_ADVICE, toServiceManifests } from "./compose-service.ts";
import { interpolateAll } from "./compose-text.ts";
import type { ComposeInput } from "./compose-volumes.ts";
import { type Imported, ImportNotes, toDnsLabel } from "./pod-parts.ts";

/** The text is not a Compose file. */
export class NotComposeError extends Error {
  override readonly name = "NotComposeError";
}

/**
 * Writes a pod for each service of a Compose file. Several services are put into a Docker network of the name of the
 * project, in which they reach each other by their names. Source: compose specification.
 * @throws NotComposeError, InterpolationError
 */
export function importCompose(input: ComposeInput): Imported {
  const { file, environment } = input;
  if (!isRecord(file) || !isRecord(file.services)) throw new NotComposeError("it has no map `services`");
  const notes = new ImportNotes();
  const missing = new Set<string>();
  const content = interpolateAll(file, environment, (name) => missing.add(name)) as { readonly [key: string]: Json };
  for (const name of missing)
    notes.add(`\${${name}}`, "has no value, neither in .env nor in the environment: it is empty");
  const services = content.services as { readonly [name: string]: Json };
  const project = typeof content.name === "string" ? content.name : input.project;
  const names = Object.keys(services);
  const network = names.length > 1 ? toDnsLabel(project) : undefined;
  const [volumes, configs, secrets] = [mapAt(content, "volumes"), mapAt(content, "configs"), mapAt(content, "secrets")];
  const claims = new Set<string>();
  const context = { ...input, project, services, volumes, configs, secrets, claims, network };
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
  return { manifests, notes: [...first, ...volumeNotes(claims), ...notes.lines] };
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
