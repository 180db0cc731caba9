import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { renderFlagsDoc } from "../src/cli/flags-doc.ts";

writeFileSync(join(import.meta.dir, "..", "docs", "flags.md"), renderFlagsDoc());
