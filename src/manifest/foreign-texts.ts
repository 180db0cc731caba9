/** Whether a pattern occurs in the text of the file. */
type Matches = (pattern: RegExp) => boolean;

/** Lines before the first one with content: blank ones and comments. */
const HEAD = String.raw`^(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*`;

const SCRIPT = /^#!/;
const MARKUP = /^\s*<(?:!doctype|html|\?xml)/i;
const DOCKERFILE = new RegExp(String.raw`${HEAD}(?:FROM|ARG)[ \t]+\S`);
const RUN_COMMAND = new RegExp(
  String.raw`${HEAD}(?:\$[ \t]+)?(?:sudo[ \t]+)?(?:docker|podman|nerdctl)[ \t]+(?:container[ \t]+)?(?:run|create)[ \t]`,
);
const ASSIGNMENT = String.raw`(?:export[ \t]+)?[A-Za-z_][\w.]*=`;
const FIRST_IS_ASSIGNMENT = new RegExp(HEAD + ASSIGNMENT);
const OTHER_LINE = new RegExp(String.raw`^[ \t]*(?!#|${ASSIGNMENT})[^\s]`, "m");
const CODE_FENCE = /^(?:```|~~~)/m;
const HEADING_FIRST = /^\s*(?:#{1,6}[ \t]+\S|\[!\[|<(?:p|h1|div|img)\b)/;
/** A line of words, as no comment and no field is. */
const PROSE = /^[A-Z][\w'’-]*(?:[ \t]+[\w'’,()`*-]+){2}[^:={}]*$/m;
const TYPE_FIELD = /^[ \t]*["']?(?:apiVersion|kind)["']?[ \t]*:/m;

/**
 * Says what a text is that is no object of YAML or JSON, and names the next step; undefined for a text of no known kind.
 * The message contains nothing of the text, which may be a secret.
 */
export function describeForeignText(matches: Matches): string | undefined {
  if (matches(MARKUP)) {
    return "this is an HTML or XML page, not a manifest: a URL has to lead to the text of the manifest, not to a page that shows it or asks for a login";
  }
  if (matches(RUN_COMMAND)) {
    return "this is a command line of docker or podman, not a manifest: start the container with docker, and let `kubelet-ts import docker CONTAINER` write its manifest";
  }
  if (matches(SCRIPT)) {
    return "this is a script, not a manifest: put the manifest that it contains or generates into a file of its own; `kubelet-ts import docker CONTAINER` writes one of a container that a script starts";
  }
  if (matches(DOCKERFILE)) {
    return "this is a Dockerfile, not a manifest: build the image with `docker build -t NAME .`, and write its name after `image:` of a container";
  }
  if (matches(FIRST_IS_ASSIGNMENT) && !matches(OTHER_LINE)) {
    return "this is a file of environment variables, not a manifest: write them as `data` of a ConfigMap or `stringData` of a Secret, and name that in `envFrom` of a container";
  }
  if (matches(CODE_FENCE) || (matches(HEADING_FIRST) && matches(PROSE) && !matches(TYPE_FIELD))) {
    return "this is Markdown (a README), not a manifest: put the manifest that it shows into a file of its own";
  }
  return undefined;
}

/** First bytes of gzip, zip, xz and zstd. */
const COMPRESSED = [
  [0x1f, 0x8b],
  [0x50, 0x4b, 0x03, 0x04],
  [0xfd, 0x37, 0x7a, 0x58],
  [0x28, 0xb5, 0x2f, 0xfd],
];
const ELF = [0x7f, 0x45, 0x4c, 0x46];

/** The next step for a compressed file or a program; undefined for other files. */
export function describeBinary(bytes: Uint8Array): string | undefined {
  const begins = (magic: readonly number[]) => magic.every((byte, index) => bytes[index] === byte);
  if (COMPRESSED.some(begins)) return "this is a compressed file, not a manifest: unpack it first";
  return begins(ELF) ? "this is a program, not a manifest: name it as `command` of a container" : undefined;
}
