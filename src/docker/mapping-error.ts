/** Upstream's reason of a container that waits because it could not be created. */
type CreateErrorReason = "CreateContainerConfigError" | "CreateContainerError" | "CreatePodSandboxError";

/** A pod that cannot be turned into a Docker container as it is. The message is the status message. */
export class MappingError extends Error {
  constructor(
    readonly reason: CreateErrorReason,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The engine or kernel cannot do what the manifest asks: an edit or a newer engine helps, trying again does not. */
export const unsupported = (
  field: string,
  message: string,
  reason: CreateErrorReason = "CreateContainerConfigError",
): MappingError => new MappingError(reason, `${field}: ${message}`);
