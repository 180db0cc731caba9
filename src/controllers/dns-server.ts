import type { ConfigMap } from "../base/api/config-objects.ts";
import type { Service } from "../base/api/service.ts";
import type { DesiredPod, DesiredState, DesiredStateStage } from "../base/model/desired-state.ts";
import { memoized } from "../base/model/memoized.ts";
import { compareFullNames, podFullName } from "../base/model/pod.ts";
import type { DnsRecords } from "../plan/pod-dns.ts";

const NAMESPACE = "kube-system";
/** The node's own: no source has objects of this name. */
const RECORDS = { namespace: NAMESPACE, name: "dns.kubelet-ts.io" };
const LABELS = { "kubelet-ts.io/server": "dns" };

/** The Service whose cluster IP pods ask, by the name it has in clusters. */
export const DNS_SERVICE: Service = {
  metadata: { namespace: NAMESPACE, name: "kube-dns", labels: { "k8s-app": "kube-dns" } },
  spec: {
    type: "ClusterIP",
    selector: LABELS,
    ports: [
      { name: "dns", port: 53, protocol: "UDP" },
      { name: "dns-tcp", port: 53, protocol: "TCP" },
    ],
  },
};

/**
 * Runs in the pod, so that it needs no kubelet-ts: has dnsmasq read changed addresses, and starts it again for changed SRV
 * and CNAME records, which it reads at its start only. `..data` is the link that changes with the files of a volume.
 */
const script = (clusterDomain: string) => `
server= seen= config=
end() { [ -z "$server" ] || kill "$server"; exit 0; }
trap end TERM INT
while :; do
  data=$(readlink /records/..data)
  if [ "$data" != "$seen" ]; then
    seen=$data new=$(cat /records/config)
    if [ "$new" != "$config" ]; then
      config=$new
      [ -z "$server" ] || { kill "$server"; wait "$server"; }
    elif [ -n "$server" ]; then
      kill -HUP "$server"
    fi
  fi
  if [ -z "$server" ] || ! kill -0 "$server" 2>/dev/null; then
    dnsmasq -k -u root -g root --log-facility=- --pid-file= --cache-size=1000 --no-hosts --addn-hosts=/records/hosts \\
      --conf-file=/records/config --local=/${clusterDomain}/ &
    server=$!
  fi
  sleep 1 & wait $!
done
`;

/** The manifest of the server. It does not depend on what is served: only another image or domain restarts it. Pure. */
export const dnsPodManifest = (image: string, clusterDomain: string): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "dns", namespace: NAMESPACE, labels: LABELS },
  spec: {
    // The node's own servers are asked for all other names.
    dnsPolicy: "Default",
    enableServiceLinks: false,
    automountServiceAccountToken: false,
    priorityClassName: "system-node-critical",
    priority: 2_000_001_000,
    terminationGracePeriodSeconds: 5,
    containers: [
      {
        name: "dnsmasq",
        image,
        imagePullPolicy: "IfNotPresent",
        command: ["/bin/sh", "-c", script(clusterDomain)],
        ports: [
          { name: "dns", containerPort: 53, protocol: "UDP" },
          { name: "dns-tcp", containerPort: 53 },
        ],
        readinessProbe: { tcpSocket: { port: 53 }, periodSeconds: 2 },
        securityContext: {
          runAsUser: 0,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ["ALL"], add: ["NET_BIND_SERVICE", "SETGID", "SETUID"] },
        },
        volumeMounts: [{ name: "records", mountPath: "/records", readOnly: true }],
      },
    ],
    volumes: [{ name: "records", configMap: { name: RECORDS.name } }],
  },
});

interface DnsServerDeps {
  pod: DesiredPod;
  /** Gets every state, with the server and its records in it. */
  next: DesiredStateStage;
}

/** The names of Services for programs that ask a DNS server: puts a pod with dnsmasq and its records into the state. */
export class DnsServer {
  readonly #deps: DnsServerDeps;
  #last: [state: DesiredState, isComplete: boolean] | undefined;
  #records: DnsRecords | undefined;

  constructor(deps: DnsServerDeps) {
    this.#deps = deps;
  }

  setDesired(state: DesiredState, isComplete: boolean): void {
    this.#last = [state, isComplete];
    this.#publish();
  }

  /** @param records undefined: the pods behind Services are not known yet */
  setRecords(records: DnsRecords | undefined): void {
    const { hosts, config } = this.#records ?? {};
    if (!records || (hosts === records.hosts && config === records.config)) return;
    this.#records = records;
    this.#publish();
  }

  /** The same map for the same ones: what pods make of it need not be made again. */
  readonly #withRecords = memoized((configMaps: ReadonlyMap<string, ConfigMap>, { hosts, config }: DnsRecords) =>
    new Map(configMaps).set(podFullName(RECORDS), { metadata: RECORDS, data: { hosts, config } }),
  );

  #publish(): void {
    if (!this.#last) return;
    const [state, isComplete] = this.#last;
    const { pod, next } = this.#deps;
    // A server that runs has records already, and is not removed.
    if (!this.#records) return next.setDesired(state, false);
    const pods = [...state.pods, pod];
    pods.sort((a, b) => compareFullNames(podFullName(a.pod.metadata), podFullName(b.pod.metadata)));
    next.setDesired({ ...state, pods, configMaps: this.#withRecords(state.configMaps, this.#records) }, isComplete);
  }
}
