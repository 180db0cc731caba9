/** Manifests as objects for `TestNode.writeManifest`. */

/** Process 1 without a handler ignores SIGTERM: a trap keeps the end of a test short. */
export const STOPPABLE = "trap 'exit 0' TERM; sleep 100000 & wait";

export const shell = (script: string) => ({ command: ["sh", "-c", script] });

type Fields = Record<string, unknown>;

/** A pod with one container, `app`, that runs until it is stopped, unless `container` says otherwise. */
export function sleeper(name: string, container: Fields = {}, spec: Fields = {}, metadata: object = {}) {
  return { apiVersion: "v1", kind: "Pod", metadata: { name, ...metadata }, spec: podSpec(container, spec) };
}

export const podSpec = (container: Fields = {}, spec: Fields = {}) => ({
  terminationGracePeriodSeconds: 1,
  containers: [{ name: "app", image: "busybox:test", ...shell(STOPPABLE), ...container }],
  ...spec,
});

/** For a pod whose network no test looks at: that of the machine costs two thirds. */
export const HOST = { hostNetwork: true };
export const HOST_POD = podSpec({}, HOST);

/** A workload of apps/v1 whose pods have the label `app` with its name. */
export const workload = (kind: string, name: string, spec: object = {}, pod: object = podSpec(), metadata = {}) => ({
  apiVersion: "apps/v1",
  kind,
  metadata: { name, ...metadata },
  spec: {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: pod },
    ...spec,
  },
});

/** A Job or a CronJob of pods that are not started again. */
export const batch = (kind: string, name: string, spec: object, container: Fields, apiVersion = "batch/v1") => {
  const template = {
    metadata: { labels: { app: name } },
    spec: podSpec(container, { restartPolicy: "Never", ...HOST }),
  };
  const jobTemplate = { spec: { template } };
  const metadata = { name };
  return { apiVersion, kind, metadata, spec: { ...(kind === "Job" ? { template } : { jobTemplate }), ...spec } };
};

export const object = (kind: string, name: string, fields: object = {}, metadata: object = {}) => ({
  apiVersion: "v1",
  kind,
  metadata: { name, ...metadata },
  ...fields,
});

const ACCESS = { accessModes: ["ReadWriteOnce"] };

export const claimSpec = (spec: object = {}) => ({ ...ACCESS, resources: { requests: { storage: "1Gi" } }, ...spec });

export const claim = (name: string, spec: object = {}) =>
  object("PersistentVolumeClaim", name, { spec: claimSpec(spec) });

/** @param source e.g. `{ hostPath: { path } }` */
export const persistentVolume = (name: string, source: object) =>
  object("PersistentVolume", name, { spec: { ...ACCESS, capacity: { storage: "1Gi" }, ...source } });

export const list = (...items: object[]) => ({ apiVersion: "v1", kind: "List", items });

/** A pod that fills a file of its volume once: its next start finds the mark in the directory and only runs. */
export const fillerOnce = (name: string, mebibytes: number, emptyDir: object, directory: string) => {
  const dd = `test -e /mark/${name} || dd if=/dev/zero of=/data/big bs=1M count=${mebibytes}; touch /mark/${name}`;
  const volumes = [
    { name: "data", emptyDir },
    { name: "mark", hostPath: { path: directory } },
  ];
  const volumeMounts = volumes.map((volume) => ({ name: volume.name, mountPath: `/${volume.name}` }));
  return sleeper(name, { ...shell(`${dd}; ${STOPPABLE}`), volumeMounts }, { volumes });
};
