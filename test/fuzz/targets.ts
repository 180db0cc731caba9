import { API_TARGETS } from "./api-targets.ts";
import { ENGINE_TARGETS } from "./engine-targets.ts";
import type { FuzzTarget } from "./fuzz-target.ts";
import { IMPORT_TARGETS } from "./import-targets.ts";
import { SERVER_TARGETS } from "./server-targets.ts";
import { TEXT_TARGETS } from "./text-targets.ts";

/** All fuzz targets. Each group of parsers has a file of its own and is added here. */
export const TARGETS: readonly FuzzTarget[] = [
  ...TEXT_TARGETS,
  ...SERVER_TARGETS,
  ...IMPORT_TARGETS,
  ...API_TARGETS,
  ...ENGINE_TARGETS,
];
