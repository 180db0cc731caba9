/** Source: meta/v1 `StatusCause`. */
export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

/** Source: meta/v1 `Status`. */
export interface Status {
  kind: "Status";
  apiVersion: "v1";
  metadata: Record<string, string>;
  status: "Success" | "Failure";
  message?: string;
  reason?: string;
  details?: {
    name?: string;
    group?: string;
    kind?: string;
    uid?: string;
    causes?: StatusCause[];
    retryAfterSeconds?: number;
  };
  code?: number;
}

/** A resource as messages name it. */
interface ResourceName {
  group: string;
  plural: string;
}

/** e.g. `pods`, `deployments.apps`. */
const qualifiedName = ({ group, plural }: ResourceName) => (group === "" ? plural : `${plural}.${group}`);

/** A refusal that the client gets as a Status. Texts, reasons and codes are those of apimachinery's `errors` package. */
export class ApiError extends Error {
  readonly status: Status;

  constructor(code: number, reason: string, message: string, details?: Status["details"]) {
    super(message);
    this.status = {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message,
      reason,
      ...(details && { details }),
      code,
    };
  }

  get code(): number {
    return this.status.code ?? 500;
  }

  get reason(): string {
    return this.status.reason ?? "";
  }
}

const detailsOf = (resource: ResourceName, name: string): Status["details"] => ({
  name,
  ...(resource.group && { group: resource.group }),
  kind: resource.plural,
});

export const notFound = (resource: ResourceName, name: string) =>
  new ApiError(404, "NotFound", `${qualifiedName(resource)} "${name}" not found`, detailsOf(resource, name));

/** Source: apiserver's response for a path that no resource serves. */
export const unknownPath = () => new ApiError(404, "NotFound", "the server could not find the requested resource", {});

/** @param isEnding it is being deleted */
export const alreadyExists = (resource: ResourceName, name: string, isEnding = false) =>
  new ApiError(
    409,
    "AlreadyExists",
    `${isEnding ? "object is being deleted: " : ""}${qualifiedName(resource)} "${name}" already exists`,
    detailsOf(resource, name),
  );

export const conflict = (resource: ResourceName, name: string, why: string) =>
  new ApiError(
    409,
    "Conflict",
    `Operation cannot be fulfilled on ${qualifiedName(resource)} "${name}": ${why}`,
    detailsOf(resource, name),
  );

export const STALE = "the object has been modified; please apply your changes to the latest version and try again";

/** The cause of a refusal, as upstream's `field.Invalid`. @param shown the value as text */
export const invalidValue = (field: string, shown: unknown, why: string): StatusCause => ({
  reason: "FieldValueInvalid",
  field,
  message: `Invalid value: ${shown}: ${why}`,
});

export const forbidden = (resource: ResourceName, name: string, why: string) =>
  new ApiError(
    403,
    "Forbidden",
    `${qualifiedName(resource)}${name === "" ? "" : ` "${name}"`} is forbidden: ${why}`,
    detailsOf(resource, name),
  );

/** @param group of the kind; "" for core */
export function invalid(group: string, kind: string, name: string, causes: readonly StatusCause[]): ApiError {
  const lines = causes.map(({ field, message }) => `${field ? `${field}: ` : ""}${message ?? ""}`);
  const text = lines.length === 1 ? lines[0] : `[${lines.join(", ")}]`;
  return new ApiError(422, "Invalid", `${group === "" ? kind : `${kind}.${group}`} "${name}" is invalid: ${text}`, {
    name,
    ...(group && { group }),
    kind,
    causes: [...causes],
  });
}

export const badRequest = (message: string) => new ApiError(400, "BadRequest", message);

export const unauthorized = () => new ApiError(401, "Unauthorized", "Unauthorized");

export const methodNotSupported = (resource: ResourceName, verb: string) =>
  new ApiError(405, "MethodNotAllowed", `${verb} is not supported on resources of kind "${qualifiedName(resource)}"`, {
    ...(resource.group && { group: resource.group }),
    kind: resource.plural,
  });

/** The events since that version are no longer kept. */
export const expired = (message: string) => new ApiError(410, "Expired", message);

export const tooLarge = (limitBytes: number) =>
  new ApiError(413, "RequestEntityTooLarge", `Request entity too large: limit is ${limitBytes}`);

export const tooManyValues = (limit: number) =>
  new ApiError(413, "RequestEntityTooLarge", `Request entity too large: the object has more than ${limit} values`);

export const tooManyRequests = (message: string) => new ApiError(429, "TooManyRequests", message);

export const notAcceptable = () =>
  new ApiError(406, "NotAcceptable", "only the following media types are accepted: application/json");

export const unsupportedMediaType = (supported: readonly string[], why = "") =>
  new ApiError(
    415,
    "UnsupportedMediaType",
    `${why === "" ? "" : `${why}: `}the body of the request was in an unknown format - accepted media types include: ${supported.join(", ")}`,
  );

export const insufficientStorage = (message: string) => new ApiError(507, "InsufficientStorage", message);

export const internalError = (message: string) =>
  new ApiError(500, "InternalError", `Internal error occurred: ${message}`, { causes: [{ message }] });
