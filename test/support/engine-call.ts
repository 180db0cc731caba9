import { engineSocketPath } from "./test-node.ts";

/** A call that a kubelet has no use for: what people do with the docker command. @throws when the engine refuses */
export async function callEngine(path: string, headers: Record<string, string> = {}): Promise<string> {
  const response = await fetch(`http://docker${path}`, { unix: engineSocketPath(), method: "POST", headers });
  const text = await response.text();
  // Errors after the first byte come inside a successful answer.
  if (!response.ok || text.includes('"errorDetail"')) throw new Error(`POST ${path}: ${response.status} ${text}`);
  return text;
}

/** An answer as the engine gives it, with what our own schemas drop. @throws when the engine refuses */
export async function readEngine(path: string): Promise<string> {
  const response = await fetch(`http://docker${path}`, { unix: engineSocketPath() });
  const text = await response.text();
  if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${text}`);
  return text;
}
