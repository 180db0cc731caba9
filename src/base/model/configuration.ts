/** A file of settings as it was read. */
export interface ConfigurationFile {
  /** Absolute. */
  path: string;
  text: string;
}

/** One version of all files of `--config` and `--config-dir`. */
export interface Configuration {
  /** Hash of paths and texts, 16 hexadecimal digits. */
  id: string;
  /** The file, then the drop-ins by name. */
  files: readonly ConfigurationFile[];
}

/** The configuration as the node reports it: `status.config` of the Node object. */
export interface ConfigurationStatus {
  /** As the files are now. */
  assigned: Configuration | undefined;
  /** The one that is in force. */
  active: Configuration | undefined;
  lastKnownGood: Configuration | undefined;
  /** Why `active` is not `assigned`. */
  error: string | undefined;
}

/** A setting cannot be used: the program ends with exit code 2. The message names the flag, what was found and what to do. */
export class SettingsError extends Error {}
