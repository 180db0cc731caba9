import type { Secret } from "../base/api/config-objects.ts";
import type { Ingress } from "../base/api/ingress.ts";
import { hasCondition } from "../base/api/meta.ts";
import type { Pod, PodStatus } from "../base/api/pod.ts";
import { ChangeLogger } from "../base/logging/change-logger.ts";
import type { DesiredObjectOf, DesiredPod, DesiredState, DesiredStateStage } from "../base/model/desired-state.ts";
import { compareFullNames, podFullName, podRefOf } from "../base/model/pod.ts";
import type { ContainerId } from "../base/model/pod-snapshot.ts";
import { hex32 } from "../base/text/json.ts";
import { computeIngressConfig, findRefused, type IngressConfig, isServedHere } from "../plan/ingress-config.ts";
import { HEALTH_HOST, HEALTH_PATH, INGRESS_DIRECTORY, type IngressPorts } from "../plan/nginx-config.ts";
import { describeHeld, toPortKey } from "../plan/service-addresses.ts";
import { ServicePods, writtenEndpoints } from "../plan/service-endpoints.ts";
import type { ControllerContext, ObservedPods } from "./controller.ts";
import type { ServiceManager } from "./service-manager.ts";
import { objectUid } from "./workload-records.ts";

/** The Secret with the configuration: the node's own, which no source has. */
const INGRESS_SECRET = { namespace: "kube-system", name: "ingress.kubelet-ts.io" };
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

interface IngressManagerDeps {
  context: ControllerContext;
  ports: IngressPorts;
  /** The server's pod, which runs while there is an Ingress. */
  server: () => DesiredPod;
  kubelet: Pick<ObservedPods, "pods" | "onChange">;
  services: Pick<ServiceManager, "holderOfPort">;
  /** Every source was read, and each pod was observed. */
  isSettled: () => boolean;
  /** Fate of the last configuration that the server has seen; undefined: nothing yet. */
  readOutcome: () => IngressOutcome | undefined;
  /** Has the server, a container of this id, look for its configuration now. */
  wake: (id: ContainerId) => void;
  /** Gets every state, with the server and its configuration in it. */
  next: DesiredStateStage;
}

/** Changes of many pods within this time are one configuration. */
const DEBOUNCE_MS = 20;
/** The server looks at its configuration once a second. */
const OUTCOME_MS = 2000;
/** While the controllers wait for it. */
const LOOK_PAUSE_MS = 100;
/** Reasons for which a container has no image. */
const IMAGE_REASONS = new Set(["ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"]);

/**
 * Ingresses to an nginx in a pod: writes its configuration into a Secret of the state, which the kubelet brings to the pod,
 * and tells what is wrong. Without Ingresses states pass through, and nothing is listened to.
 */
export class IngressManager {
  readonly #deps: IngressManagerDeps;
  readonly #context: ControllerContext;
  readonly #log: ChangeLogger;
  #last: [state: DesiredState, isComplete: boolean] | undefined;
  #ingresses: readonly DesiredObjectOf<"Ingress">[] = [];
  #config: IngressConfig | undefined;
  /** Fate of {@link #config}; undefined while it is not known. */
  #outcome: IngressOutcome | undefined;
  /** With the signature of the Ingress and its Secrets as they were refused. */
  #refused = new Map<string, { signature: string; message: string }>();
  /** Nothing is known that keeps requests from the server. */
  #isReached = false;
  #unsubscribe: (() => void) | undefined;
  #cancelDebounce: (() => void) | undefined;
  #cancelLook: (() => void) | undefined;
  /** Monotonic: before this {@link isAwaited} does not look again. */
  #nextLookMs = 0;

  constructor(deps: IngressManagerDeps) {
    this.#deps = deps;
    this.#context = deps.context;
    this.#log = new ChangeLogger(deps.context.logger);
  }

  setDesired(state: DesiredState, isComplete: boolean): void {
    this.#last = [state, isComplete];
    const { objects = [] } = state;
    const classes = objects.flatMap((it) => (it.kind === "IngressClass" ? [it.object] : []));
    this.#ingresses = objects.flatMap((it) =>
      it.kind === "Ingress" && isServedHere(it.object, classes) ? [it as DesiredObjectOf<"Ingress">] : [],
    );
    if (this.#ingresses.length > 0) {
      this.#unsubscribe ??= this.#deps.kubelet.onChange(() => this.#requestUpdate());
      return this.#update(true);
    }
    this.stop();
    this.#config = undefined;
    this.#deps.next.setDesired(state, isComplete);
  }

  /** The address of an Ingress while it is served; undefined for one of another class. */
  statusOf({ metadata }: Pick<Ingress, "metadata">): object | undefined {
    const name = podFullName(metadata);
    if (!this.#ingresses.some(({ object }) => podFullName(object.metadata) === name)) return undefined;
    const isServed = this.#isReached && this.#config?.served.has(name) && hasCondition(this.#server()?.status, "Ready");
    return { loadBalancer: isServed ? { ingress: [{ ip: this.#context.node.ip }] } : {} };
  }

  /**
   * Whether the server, which works, is about to send requests to a pod with this status, but does not yet: until then it needs
   * the pods that this one replaces.
   */
  isAwaited({ podIPs = [] }: PodStatus): boolean {
    if (this.#ingresses.length === 0 || !hasCondition(this.#server()?.status, "Ready")) return false;
    const { clock } = this.#context;
    const nowMs = clock.monotonicMs();
    if (this.#cancelDebounce || nowMs >= this.#nextLookMs) {
      this.#look();
      this.#nextLookMs = nowMs + LOOK_PAUSE_MS;
    }
    const { text = "" } = this.#config ?? {};
    const isNamed = podIPs.some(({ ip }) => text.includes(`server ${ip}:`) || text.includes(`server [${ip}]:`));
    return isNamed && this.#outcome === undefined;
  }

  stop(): void {
    for (const cancel of [this.#unsubscribe, this.#cancelDebounce, this.#cancelLook]) cancel?.();
    this.#unsubscribe = this.#cancelDebounce = this.#cancelLook = undefined;
  }

  #requestUpdate(): void {
    this.#cancelDebounce ??= this.#context.clock.schedule(DEBOUNCE_MS, () => {
      this.#cancelDebounce = undefined;
      this.#update(false);
    });
  }

  #update(isNewState: boolean): void {
    const { next } = this.#deps;
    const [state, isComplete] = this.#last!;
    let isNewConfig = false;
    if (this.#deps.isSettled()) {
      const config = this.#compute(state);
      isNewConfig = config.revision !== this.#config?.revision;
      if (isNewConfig) this.#outcome = undefined;
      this.#config = config;
      this.#report();
      const { status } = this.#server() ?? {};
      const isSettled = this.#outcome && this.#outcome.state !== "ended" && hasCondition(status, "Ready");
      if (status?.phase === "Running" && !isSettled) this.#scheduleLook();
    }
    if (!isNewState && !isNewConfig) return;
    // Without a configuration the pod is not in the state, but must not be removed either.
    if (this.#config) next.setDesired(this.#withServer(state, this.#config), isComplete);
    else next.setDesired(state, false);
    const { containerID } = this.#server()?.status?.containerStatuses?.[0] ?? {};
    if (isNewConfig && containerID) this.#deps.wake(containerID.replace("docker://", "") as ContainerId);
  }

  #compute(state: DesiredState): IngressConfig {
    const { objects = [], secrets } = state;
    const signatures = new Map<string, string>(
      this.#ingresses.map((it) => [podFullName(it.object.metadata), signatureOf(it, state)]),
    );
    for (const [name, { signature }] of this.#refused) {
      if (signatures.get(name) !== signature) this.#refused.delete(name);
    }
    return computeIngressConfig({
      ingresses: this.#ingresses.map(({ object }) => object),
      services: objects.flatMap((it) => (it.kind === "Service" ? [it.object] : [])),
      secrets,
      pods: new ServicePods(this.#deps.kubelet.pods(), writtenEndpoints(objects)),
      ports: this.#deps.ports,
      refused: new Map([...this.#refused].map(([name, { message }]) => [name, message] as const)),
    });
  }

  #withServer(state: DesiredState, { text, files }: IngressConfig): DesiredState {
    const pods = [...state.pods, this.#deps.server()];
    pods.sort((a, b) => compareFullNames(podFullName(a.pod.metadata), podFullName(b.pod.metadata)));
    const all = [[CONFIG_KEY, text] as const, [SCRIPT_KEY, INGRESS_SCRIPT] as const, ...files];
    const data = Object.fromEntries(all.map(([name, value]) => [name, Buffer.from(value).toString("base64")]));
    const secret: Secret = { metadata: INGRESS_SECRET, data, type: "Opaque" };
    return { ...state, pods, secrets: new Map(state.secrets).set(podFullName(INGRESS_SECRET), secret) };
  }

  #server(): Pod | undefined {
    const { uid } = this.#deps.server().pod.metadata;
    return this.#deps.kubelet.pods().find(({ metadata }) => metadata.uid === uid);
  }

  #scheduleLook(): void {
    this.#cancelLook ??= this.#context.clock.schedule(OUTCOME_MS, () => {
      this.#cancelLook = undefined;
      this.#look();
    });
  }

  /** Looks whether nginx took the configuration: an Ingress that it refuses is left out of the next one. */
  #look(): void {
    const { readOutcome, server } = this.#deps;
    const { recorder } = this.#context;
    const config = this.#config;
    const outcome = readOutcome();
    if (config && outcome?.revision === config.revision && outcome.state !== this.#outcome?.state) {
      this.#outcome = outcome;
      if (outcome.state === "refused") {
        const message = `The configuration is refused, the one before stays: ${outcome.message}`;
        recorder.record(podRefOf(server().pod), { type: "Warning", reason: "ConfigurationRefused", message });
        const names = findRefused(config, outcome.message);
        for (const ingress of this.#ingresses) {
          const name = podFullName(ingress.object.metadata);
          if (!names.includes(name)) continue;
          this.#refused.set(name, { signature: signatureOf(ingress, this.#last![0]), message: outcome.message });
        }
      }
    }
    this.#update(false);
  }

  /** Tells what is wrong with each Ingress. */
  #report(): void {
    const { recorder, node } = this.#context;
    const ofServer = this.#findServerProblem();
    this.#isReached = ofServer === undefined;
    for (const { object } of this.#ingresses) {
      const { metadata } = object;
      const fullName = podFullName(metadata);
      const problems = [...(this.#config?.problems.get(fullName) ?? []), ...(ofServer ? [ofServer] : [])];
      const key = `ingress ${fullName}`;
      if (problems.length === 0) this.#log.resolve(key, `Ingress "${fullName}" is served`);
      else if (this.#log.note(key, JSON.stringify(problems))) {
        const { name = "", namespace = "default" } = metadata;
        const uid = metadata.uid ?? objectUid(node.name, "Ingress", namespace, name);
        const target = { kind: "Ingress", apiVersion: "networking.k8s.io/v1", name, namespace, uid };
        for (const problem of problems) recorder.record(target, { type: "Warning", ...problem });
      }
    }
  }

  /** Why no Ingress is reached; undefined while the server runs, or may soon. */
  #findServerProblem(): { reason: string; message: string } | undefined {
    const { ports, services, server } = this.#deps;
    const hasEnded = this.#outcome?.state === "ended";
    const { status } = this.#server() ?? {};
    const problem = (message: string) => ({ reason: "IngressServerNotReady", message });
    const { pod } = server();
    const { image } = pod.spec.containers[0]!;
    const waiting = status?.containerStatuses?.[0]?.state?.waiting?.reason;
    if (waiting && IMAGE_REASONS.has(waiting)) {
      const fix = `run "docker pull ${image}", or name another image of nginx with --ingress-image`;
      return problem(`the ingress server has no image ${JSON.stringify(image)}: ${fix}`);
    }
    if (status?.phase === "Failed") return problem(`the ingress server does not run: ${status.message ?? ""}`);
    const wanted = [ports.http, ports.https].map((port) => toPortKey("TCP", port));
    const held = describeHeld(wanted, (protocol, port) => services.holderOfPort(protocol, port, hasEnded));
    if (held !== undefined) return problem(`${held}: free it, or set --ingress-ports`);
    if (!hasEnded) return undefined;
    return problem(`nginx does not start: see the log of pod "${podFullName(pod.metadata)}"`);
  }
}

/** Changes with an Ingress and the Secrets it names. */
function signatureOf({ object, revision }: DesiredObjectOf<"Ingress">, { secrets }: DesiredState): string {
  const { namespace = "default" } = object.metadata;
  const used = (object.spec.tls ?? []).map(({ secretName = "" }) => secrets.get(`${namespace}/${secretName}`));
  return hex32(JSON.stringify([revision, used]));
}
