/** Manifests as objects for `TestNode.writeManifest`; grace of 1 s keeps tests short. */
export function sleeper(name: string, container: Record<string, unknown> = {}, spec: Record<string, unknown> = {}) {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: "app",
          image: "busybox:test",
          // pid 1 without a handler ignores SIGTERM: a trap keeps the end of a test short.
          command: ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"],
          ...container,
        },
      ],
      ...spec,
    },
  };
}
