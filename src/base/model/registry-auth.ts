/** Credentials for a registry, as Docker's X-Registry-Auth carries them. Never logged. */
export interface RegistryAuth {
  username?: string;
  password?: string;
  /** base64 of `user:password`; Docker's own configuration has it instead of the two. */
  auth?: string;
  /** A refresh token instead of a password. */
  identitytoken?: string;
  /** A bearer token for the registry itself. */
  registrytoken?: string;
  serveraddress?: string;
}
