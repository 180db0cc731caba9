import type { Secret } from "../api/secret.ts";

/** Moves `stringData` into `data`, where it wins, as the API server does. Changes the secret in place. */
export function mergeStringData(secret: Secret): void {
  if (!secret.stringData) return;
  const data: Record<string, string> = Object.assign(Object.create(null), secret.data);
  for (const [key, value] of Object.entries(secret.stringData))
    data[key] = Buffer.from(value, "utf8").toString("base64");
  secret.data = data;
  delete secret.stringData;
}
