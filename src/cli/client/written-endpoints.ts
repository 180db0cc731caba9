import type { EndpointSlice, Endpoints } from "../../base/api/endpoints.ts";
import type { ApiClient } from "./api-client.ts";

/** The Endpoints and EndpointSlices of all namespaces that clients and manifests wrote: a controller owns the others. */
export async function readWrittenEndpoints(api: ApiClient): Promise<(Endpoints | EndpointSlice)[]> {
  const lists = await Promise.all(
    ["endpoints", "endpointslices"].map(async (kind) => api.list(await api.findResource(kind), undefined)),
  );
  const written = lists.flat().filter((it) => !it.metadata.ownerReferences?.some(({ controller }) => controller));
  return written as unknown as (Endpoints | EndpointSlice)[];
}
