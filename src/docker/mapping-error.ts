/** Upstream's reason of a container that waits because it could not be created. */
type CreateErrorReason = "CreateContainerConfigError" | "CreateContainerError" | "CreatePodSandboxError";

/** A pod that cannot be turned into a Docker container as it is. The message is the status message. */
export class MappingError extends Error {
  override name = "MappingError";

  constructor(
    readonly reason: CreateErrorReason,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * The manifest asks for something that this engine or kernel does not do. It is refused instead of being done by half
 * (X5); an edit of the manifest or a newer engine is the way out, trying again is not.
 */
export class UnsupportedError extends MappingError {
  override name = "UnsupportedError";

  constructor(
    /** e.g. `spec.securityContext.supplementalGroupsPolicy`. */
    readonly field: string,
    message: string,
    reason: CreateErrorReason = "CreateContainerConfigError",
  ) {
    super(reason, `${field}: ${message}`);
  }
}
