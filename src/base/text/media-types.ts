/**
 * The media types of an `Accept` or `Content-Type` header, or codings, lower case, as they are written; a part without one
 * is left out. Source: RFC 9110, 12.5.
 */
export function parseMediaTypes(header: string) {
  return header
    .split(",")
    .map((part) => {
      const [type = "", ...rest] = part.split(";").map((piece) => piece.trim());
      const parameters: Readonly<Record<string, string>> = Object.fromEntries(
        rest.map((piece) => {
          const [name = "", value = ""] = piece.split("=", 2);
          return [name.trim().toLowerCase(), value.trim().replace(/^"(.*)"$/, "$1")];
        }),
      );
      return { type: type.toLowerCase(), parameters };
    })
    .filter(({ type }) => type !== "");
}
