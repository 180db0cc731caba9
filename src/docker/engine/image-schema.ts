import * as v from "valibot";
import { ContainerConfigSchema } from "./container-schema.ts";
import { listOf, text, textMap, whole } from "./shapes.ts";

/** An item of `GET /images/json`. */
export const ImageSummarySchema = v.object({
  Id: v.string(),
  /** Without the `<none>:<none>` that older engines write for an untagged image. */
  RepoTags: v.pipe(
    listOf(v.string()),
    v.transform((tags) => tags.filter((tag) => tag !== "<none>:<none>")),
  ),
  RepoDigests: v.pipe(
    listOf(v.string()),
    v.transform((digests) => digests.filter((digest) => digest !== "<none>@<none>")),
  ),
  /** Unix seconds. */
  Created: whole,
  /** Bytes, shared layers included. */
  Size: whole,
  Labels: textMap,
});
export type ImageSummary = v.InferOutput<typeof ImageSummarySchema>;

/** `GET /images/<name>/json`. */
export const ImageInspectSchema = v.object({
  Id: v.string(),
  RepoTags: listOf(v.string()),
  RepoDigests: listOf(v.string()),
  /** RFC 3339; absent for an image without date. */
  Created: text,
  /** As Go names it: amd64, arm64. */
  Architecture: text,
  Os: text,
  Size: whole,
  /** Digests of the unpacked layers, lowest first: the same in every image store, unlike the id. */
  RootFS: v.nullish(v.object({ Layers: listOf(v.string()) }), { Layers: [] }),
  Config: v.nullish(ContainerConfigSchema, () => v.parse(ContainerConfigSchema, {})),
});
export type ImageInspect = v.InferOutput<typeof ImageInspectSchema>;

/** `GET /distribution/<name>/json`. */
export const DistributionSchema = v.object({
  Descriptor: v.object({ digest: v.string() }),
  /** One for an image without an index. `unknown` are attestations. */
  Platforms: listOf(v.object({ architecture: text, os: text })),
});
export type Distribution = v.InferOutput<typeof DistributionSchema>;

/** The steps of `DELETE /images/<name>`. */
export const ImageRemovedSchema = v.array(v.object({ Untagged: text, Deleted: text }));

/** One line of a pull or a load (`JSONMessage`). `error` comes last, although the response began with 200. */
export const ProgressLineSchema = v.object({
  /** The layer's short id; "" for what concerns the whole image. */
  id: text,
  /** `Downloading`, `Pull complete`, … */
  status: text,
  /** Free text of a load. */
  stream: text,
  progressDetail: v.nullish(v.object({ current: whole, total: whole }), { current: 0, total: 0 }),
  error: text,
  errorDetail: v.nullish(v.object({ code: whole, message: text }), null),
});
export type ProgressLine = v.InferOutput<typeof ProgressLineSchema>;
