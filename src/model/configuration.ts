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

/** What the node reports about its configuration, as `status.config` of the Node object. */
export interface ConfigurationStatus {
  /** As the files are now. */
  assigned: Configuration | undefined;
  /** What the kubelet runs with. */
  active: Configuration | undefined;
  lastKnownGood: Configuration | undefined;
  /** Why `active` is not `assigned`. */
  error: string | undefined;
}
