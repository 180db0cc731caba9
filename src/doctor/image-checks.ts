import { type CheckResult, fail, ok, warn } from "./check-result.ts";
import type { ImageFacts } from "./machine-facts.ts";

const NODE_ARCHITECTURE: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/** Whether the containers of this image can start here. */
export function checkImage({ name, present, architecture, pullPolicy, remote }: ImageFacts): CheckResult {
  const label = `image ${name}`;
  const own = NODE_ARCHITECTURE[process.arch] ?? process.arch;
  if (!present && pullPolicy === "Never") {
    return fail(label, "is not on this machine, and imagePullPolicy is Never", `docker load, or docker pull ${name}`);
  }
  if (remote && "problem" in remote) {
    const state = present ? "imagePullPolicy is Always, and it" : "is not on this machine and";
    const fix = `correct the name or imagePullSecrets, or load it: docker load${present ? ", with imagePullPolicy: IfNotPresent" : ""}`;
    return fail(label, `${state} cannot be pulled: ${remote.problem}`, fix);
  }
  if (remote && remote.architectures.length > 0 && !remote.architectures.includes(own)) {
    const there = [...new Set(remote.architectures)].filter((found) => found !== "unknown").join(", ");
    return fail(label, `the registry has it for ${there}, this machine is ${own}`, "use an image for this machine");
  }
  if (!present) {
    if (remote) return ok(label, "is not on this machine yet; the registry has it");
    return warn(label, "is not on this machine yet and is pulled at the start", `docker pull ${name}`);
  }
  if (architecture !== "" && architecture !== own) {
    return fail(label, `is for ${architecture}, this machine is ${own}`, `docker pull --platform linux/${own} ${name}`);
  }
  return ok(label, remote ? "present, and the registry has it" : "present");
}
