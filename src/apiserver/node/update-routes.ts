import { isRecord } from "../../base/text/json.ts";
import { badRequest, methodNotSupported } from "../api-error.ts";
import { json } from "../api-request.ts";
import type { ExtraRoute } from "../api-server.ts";
import { readOptionalBody } from "../body.ts";

/** Updates of images, as the commands see them. */
interface ImageUpdates {
  report(): object[];
  checkNow(owner: string | undefined): number;
  undo(owner: string): string[];
}

/**
 * `/apis/kubelet-ts.io/v1/imageupdates`: GET lists; POST `{"action": "now" | "undo", "owner": "default/web"}`
 * looks up or rolls back.
 */
export const updateRoutes = (updates: ImageUpdates): ExtraRoute[] => [
  {
    group: "kubelet-ts.io",
    version: "v1",
    name: "imageupdates",
    kind: "ImageUpdate",
    namespaced: false,
    verbs: ["create"],
    handle: async (request) => {
      if (request.method === "GET") return json(200, { items: updates.report() });
      if (request.method !== "POST")
        throw methodNotSupported({ group: "kubelet-ts.io", plural: "imageupdates" }, "get");
      const body = await readOptionalBody(request);
      const { action, owner } = isRecord(body) ? body : {};
      if (owner !== undefined && typeof owner !== "string") throw badRequest("owner must be a string");
      if (action === "now") return json(200, { count: updates.checkNow(owner) });
      if (action !== "undo" || owner === undefined) throw badRequest('action must be "now", or "undo" with an owner');
      return json(200, { images: updates.undo(owner) });
    },
  },
];
