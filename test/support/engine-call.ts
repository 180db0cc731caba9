import { engineSocketPath } from "./test-node.ts";

/** A call that a kubelet has no use for: what people do with the docker command. @throws when the engine refuses */
export async function callEngine(path: string, headers: Record<string, string> = {}): Promise<string> {
  const response = await fetch(`http://docker${path}`, { unix: engineSocketPath(), method: "POST", headers });
  const text = await response.text();
  // Errors after the first byte come inside a successful answer.
  if (!response.ok || text.includes('"errorDetail"')) throw new Error(`POST ${path}: ${response.status} ${text}`);
  return text;
}
