/** An API server of these pods and nothing else: what is created or changed is answered as it was sent. To be stopped. */
export const serveEmptyCluster = (port: number, pods: readonly object[] = []) =>
  Bun.serve({
    port,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: async (request) => {
      const { pathname, searchParams } = new URL(request.url);
      if (searchParams.get("watch") === "true") {
        const first = JSON.stringify({ type: "BOOKMARK", object: { metadata: { resourceVersion: "1" } } });
        return new Response(new ReadableStream({ start: (stream) => stream.enqueue(`${first}\n`) }));
      }
      if (request.method !== "GET") {
        const object = (await request.json()) as { metadata?: object };
        return Response.json({ ...object, metadata: { uid: "1", resourceVersion: "1", ...object.metadata } });
      }
      // Names of this node's objects have a dash.
      return /\/[a-z]+$/.test(pathname)
        ? Response.json({ metadata: { resourceVersion: "1" }, items: pathname === "/api/v1/pods" ? pods : [] })
        : Response.json({ kind: "Status", reason: "NotFound", code: 404 }, { status: 404 });
    },
  });

/** A kubeconfig in JSON, which is YAML. @param cluster its URL, or its fields */
export const toKubeconfig = (cluster: string | object, user: object = { token: "t" }): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: typeof cluster === "string" ? { server: cluster } : cluster }],
    users: [{ name: "u", user }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  });
