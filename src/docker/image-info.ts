import type { ImageInspect } from "./engine/image-schema.ts";

/** The properties of an image that a container created from it needs. */
export interface ImageInfo {
  /** The engine's, `sha256:…`: what containers are created from. */
  id: string;
  /** As the manifest names it, with `:latest` where it had neither tag nor digest. */
  ref: string;
  /** `repository@sha256:…`, empty for an image that was never pulled or pushed. */
  repoDigests: readonly string[];
  repoTags: readonly string[];
  /** `USER`: name, uid, or either with group; "" = root. */
  user: string;
  /** `KEY=value`. */
  env: readonly string[];
  entrypoint: readonly string[];
  cmd: readonly string[];
  /** "" = /. */
  workingDir: string;
  /** Container paths of `VOLUME`. */
  volumes: readonly string[];
  /** e.g. `SIGQUIT`; "" = SIGTERM. */
  stopSignal: string;
  /** Its own HEALTHCHECK, which a pod switches off; undefined = none. */
  healthcheck: readonly string[] | undefined;
  labels: Readonly<Record<string, string>>;
  /** As Go names it. */
  architecture: string;
  sizeBytes: number;
}

export function toImageInfo(ref: string, image: ImageInspect): ImageInfo {
  const { Config } = image;
  return {
    id: image.Id,
    ref,
    repoDigests: image.RepoDigests,
    repoTags: image.RepoTags,
    user: Config.User,
    env: Config.Env,
    entrypoint: Config.Entrypoint ?? [],
    cmd: Config.Cmd ?? [],
    workingDir: Config.WorkingDir,
    volumes: Object.keys(Config.Volumes),
    stopSignal: Config.StopSignal,
    healthcheck: Config.Healthcheck?.Test,
    labels: Config.Labels,
    architecture: image.Architecture,
    sizeBytes: image.Size,
  };
}
