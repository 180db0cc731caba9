/** In which form a response is wanted. */
type Shape = "object" | "table" | "metadata";

export interface WantedForm {
  shape: Shape;
  /** Version of `meta.k8s.io` for tables and metadata. */
  metaVersion: "v1" | "v1beta1";
}

/** A media type of an `Accept` or `Content-Type` header, lower case, with its parameters. */
interface MediaType {
  type: string;
  parameters: Readonly<Record<string, string>>;
}

export function parseMediaTypes(header: string): MediaType[] {
  return header
    .split(",")
    .map((part) => {
      const [type = "", ...rest] = part.split(";").map((piece) => piece.trim());
      const parameters = Object.fromEntries(
        rest.map((piece) => {
          const [name = "", value = ""] = piece.split("=", 2);
          return [name.trim().toLowerCase(), value.trim().replace(/^"(.*)"$/, "$1")];
        }),
      );
      return { type: type.toLowerCase(), parameters };
    })
    .filter(({ type }) => type !== "");
}

/** The first form an `Accept` header names that can be served; undefined: none can (406). */
export function negotiateForm(accept: string | null): WantedForm | undefined {
  const wanted = parseMediaTypes(accept ?? "");
  if (wanted.length === 0) return { shape: "object", metaVersion: "v1" };
  for (const { type, parameters } of wanted) {
    if (type !== "application/json" && type !== "*/*" && type !== "application/*") continue;
    const { as, g = "meta.k8s.io", v = "v1" } = parameters;
    if (as === undefined) return { shape: "object", metaVersion: "v1" };
    if (g !== "meta.k8s.io" || (v !== "v1" && v !== "v1beta1")) continue;
    if (as === "Table") return { shape: "table", metaVersion: v };
    if (as === "PartialObjectMetadata" || as === "PartialObjectMetadataList")
      return { shape: "metadata", metaVersion: v };
  }
  return undefined;
}
