import { nearestName } from "../../base/text/nearest-name.ts";
import { kindNames, loadServedKinds } from "../client/served-kinds.ts";
import type { CommandIo } from "../command-io.ts";
import { type DocumentedType, findField, renderFields, renderTree } from "../print/kind-fields.ts";
import { type CommandRequest, UsageError } from "../sub-command.ts";

/**
 * `kubelet-ts explain pod.spec`: the fields of a kind, as the manifests are read. Needs no kubelet.
 * @param written a kind, and fields behind dots
 * @returns undefined when the first word is no kind
 */
export async function explainKind(
  written: string,
  request: CommandRequest,
  io: CommandIo,
): Promise<number | undefined> {
  const [word = "", ...fields] = written.split(".");
  const kinds = await loadServedKinds();
  const kind = kinds.find((it) => kindNames(it).includes(word.toLowerCase()));
  if (!kind) return undefined;
  const [{ definitionName, openApiDefinitions }, { default: descriptions }] = await Promise.all([
    import("../../apiserver/openapi/definitions.ts"),
    import("../../apiserver/openapi/descriptions.json", { with: { type: "json" } }),
  ]);
  const definitions = openApiDefinitions(kinds, descriptions) as Record<string, DocumentedType>;
  const found = findField(definitions, definitionName(kind), fields);
  if ("missing" in found) {
    const near = nearestName(found.missing, found.known);
    const hint = near === undefined ? `; it has ${found.known.join(", ") || "no fields"}` : `; did you mean ${near}?`;
    throw new UsageError(`${found.path || kind.kind} has no field "${found.missing}"${hint}`);
  }
  const head = [
    ...(kind.group === "" ? [] : [`GROUP:      ${kind.group}`]),
    `KIND:       ${kind.kind}`,
    `VERSION:    ${kind.version}`,
  ];
  const body = request.isOn("recursive") ? renderTree(definitions, found) : renderFields(definitions, found);
  io.stdout(`${head.join("\n")}\n\n${body}`);
  return 0;
}
