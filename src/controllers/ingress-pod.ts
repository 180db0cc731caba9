import { hex32 } from "../base/text/json.ts";
import { HEALTH_HOST, HEALTH_PATH, INGRESS_DIRECTORY, type IngressPorts } from "../plan/nginx-config.ts";

/** The Secret with the configuration: the node's own, which no source has. */
export const INGRESS_SECRET = { namespace: "kube-system", name: "ingress.kubelet-ts.io" };
/** Keys in it: of nginx.conf, and of the script that the pod runs. */
export const CONFIG_KEY = "next.conf";
export const SCRIPT_KEY = "run.sh";
/** Volume in which the server works, and the file in it with the fate of a configuration. */
export const INGRESS_VOLUME = "run";
export const OUTCOME_FILE = "outcome";

/** Has the server look for its configuration now. */
export const WAKE_SIGNAL = "USR1";

/** Fate of a configuration: it is used, nginx refuses it, or nginx came to its end with it. */
export interface IngressOutcome {
  revision: string;
  state: "used" | "refused" | "ended";
  /** First line of nginx's text. */
  message: string;
}

/** @param text of the outcome file; undefined: there is none */
export function parseOutcome(text: string | undefined): IngressOutcome | undefined {
  const [, revision, state, said = ""] = /^(\w+) (used|refused|ended)\n(.*)/.exec(text ?? "") ?? [];
  // nginx begins with the time, the level and its process.
  const message = said.replace(/^\S+ \S+ \[\w+\] \d+#\d+: /, "");
  return revision === undefined ? undefined : { revision, state: state as IngressOutcome["state"], message };
}

/** nginx tries for less than this to get its ports before it gives up. */
const BIND_SECONDS = 4;

/**
 * Runs in the pod, so that it needs no kubelet-ts: tests a new configuration, and has nginx use it. Requests in flight are
 * finished by the workers that have them. A configuration that nginx refuses changes nothing; it lies there until the next
 * one, and its refusal stays told as long. `..data` is the link that changes with the files of a volume. Another version
 * of the script, which is a file too, takes the place of this one and of its nginx, which goes on. It looks for a
 * configuration once a second, and for a second after {@link WAKE_SIGNAL} without pauses.
 */
const SCRIPT = `
umask 077
cd ${INGRESS_DIRECTORY} || exit 1
chmod 755 .
nginx=\${1-} seen= up=0 quick=0
revision() { sed -n '1s/# //p' "$1"; }
tell() { printf '%s %s\\n%s\\n' "$(revision "$1")" "$2" "$3" > outcome.new && mv -f outcome.new ${OUTCOME_FILE}; }
end() {
  [ -z "$nginx" ] || { kill -QUIT "$nginx"; wait "$nginx"; }
  # One that another script started cannot be waited for.
  while [ -n "$nginx" ] && kill -0 "$nginx" 2>/dev/null; do sleep 1 & wait $!; done
  exit 0
}
trap end TERM QUIT INT
trap 'quick=20' ${WAKE_SIGNAL}
update() {
  # Workers read a file with passwords at each request: it is always whole, and stays for those of the configuration before.
  [ ! -e nginx.conf ] || for file in auth-* tls-*; do grep -q "$file" nginx.conf || rm -f "$file"; done
  mkdir -p new && rm -f new/* && cp /config/"$1"/* new || return
  for file in new/auth-*; do [ ! -e "$file" ] || chmod 644 "$file"; done
  mv -f new/* .
  [ "$(revision ${SCRIPT_KEY})" = "$version" ] || exec /bin/sh "$PWD/${SCRIPT_KEY}" "$nginx"
  if ! message=$(nginx -t -q -c "$PWD/${CONFIG_KEY}" 2>&1); then
    echo "The configuration is refused, the one before stays: $message" >&2
    # A test that was killed, or had no memory, is made again.
    case $message in *emerg*) seen=$1 ;; esac
    tell ${CONFIG_KEY} refused "$message"
    return
  fi
  seen=$1
  mv -f ${CONFIG_KEY} nginx.conf
  [ -z "$nginx" ] || kill -HUP "$nginx" 2>/dev/null
  # The loop reports one that still tries for its ports. Workers of the configuration before take requests for 0.1 s.
  [ $up -lt ${BIND_SECONDS} ] || { sleep 0.2; tell nginx.conf used; }
}
while :; do
  [ /config/..data -ef "/config/\${seen:-..none}" ] || update "$(readlink /config/..data)"
  if [ -n "$nginx" ] && kill -0 "$nginx" 2>/dev/null; then
    [ $up -ne ${BIND_SECONDS} ] || [ -e ${CONFIG_KEY} ] || tell nginx.conf used
  elif [ -e nginx.conf ]; then
    [ -z "$nginx" ] || [ -e ${CONFIG_KEY} ] || tell nginx.conf ended
    nginx -c "$PWD/nginx.conf" & nginx=$! up=0
  fi
  if [ $quick -gt 0 ]; then
    quick=$((quick - 1))
    sleep 0.05
  else
    sleep 1 & wait $! && up=$((up + 1))
  fi
done
`;

/** The file of {@link SCRIPT_KEY}. */
export const INGRESS_SCRIPT = `# ${hex32(SCRIPT)}\nversion=${hex32(SCRIPT)}${SCRIPT}`;

/** The manifest of the ingress server. It does not depend on what is served: only another image or port restarts it. Pure. */
export const ingressPodManifest = (image: string, ports: IngressPorts): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "ingress", namespace: INGRESS_SECRET.namespace, labels: { "app.kubernetes.io/name": "ingress" } },
  spec: {
    // Addresses of clients are seen, and pods of every network are reached.
    hostNetwork: true,
    dnsPolicy: "Default",
    enableServiceLinks: false,
    automountServiceAccountToken: false,
    priorityClassName: "system-node-critical",
    priority: 2_000_001_000,
    containers: [
      {
        name: "nginx",
        image,
        imagePullPolicy: "IfNotPresent",
        command: ["/bin/sh", `/config/${SCRIPT_KEY}`],
        ports: [
          { name: "http", containerPort: ports.http },
          { name: "https", containerPort: ports.https },
        ],
        readinessProbe: {
          httpGet: {
            host: "127.0.0.1",
            port: ports.http,
            path: HEALTH_PATH,
            httpHeaders: [{ name: "Host", value: HEALTH_HOST }],
          },
          periodSeconds: 2,
        },
        securityContext: {
          runAsUser: 0,
          allowPrivilegeEscalation: false,
          // Workers run as another user, whom their files belong to.
          capabilities: { drop: ["ALL"], add: ["NET_BIND_SERVICE", "SETUID", "SETGID", "CHOWN", "KILL"] },
        },
        volumeMounts: [
          { name: "config", mountPath: "/config", readOnly: true },
          { name: INGRESS_VOLUME, mountPath: INGRESS_DIRECTORY },
        ],
      },
    ],
    volumes: [
      { name: "config", secret: { secretName: INGRESS_SECRET.name, defaultMode: 0o400 } },
      { name: INGRESS_VOLUME, emptyDir: {} },
    ],
  },
});
