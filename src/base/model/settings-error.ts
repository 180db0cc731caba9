/** A setting cannot be used: the program ends with exit code 2. The message names the flag, what was found and the way out. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}
