import * as v from "valibot";
import { type Pod, type PodSpec, type Toleration, TolerationSchema } from "../../base/api/pod.ts";
import { type DecodeIssue, decodeObject, isTypeIssue } from "../decode/decode.ts";
import { objectShapeOf } from "../decode/shape.ts";
import { Field, type FieldError } from "../field.ts";
import { parseJson } from "../yaml/json-parser.ts";
import { type SourceNode, TextError } from "../yaml/source-node.ts";
import { validateContainers, validateEphemeralContainers, validateInitContainers } from "./containers.ts";
import {
  byteLength,
  checkDescendingPath,
  checkDnsLabel,
  checkDnsSubdomain,
  checkIp,
  checkQualifiedName,
  checkSearchDomain,
  validateAnnotations,
  validateLabels,
  validateMetadata,
} from "./names.ts";
import { validateOverhead, validatePodResources } from "./resources.ts";
import { validateAffinity, validateTolerations, validateTopologySpread } from "./scheduling.ts";
import { validatePodSecurityContext } from "./security-context.ts";
import { validateVolumes } from "./volumes.ts";

const MAX_DEADLINE_SECONDS = 2147483647;

export interface ValidateOptions {
  /** Default true. */
  allowPrivileged?: boolean | undefined;
  /** Whether ephemeral containers are allowed, as in a running pod. Default false: a manifest has none. */
  allowEphemeralContainers?: boolean;
}

/**
 * Validates a defaulted static pod by the rules and field paths of Kubernetes; where versions differ, by the newest.
 * Source: core validation `ValidatePodCreate`.
 */
export function validatePod(pod: Field<Pod>, options: ValidateOptions): void {
  validateMetadata(pod.field("metadata"), `-${pod.value.spec.nodeName ?? ""}`);
  validatePodAnnotations(pod);
  validatePodSpec(pod, options);
}

/**
 * A pod template of a workload: as {@link validatePod}, but the metadata holds labels and annotations only.
 * Source: core validation `ValidatePodTemplateSpec`.
 * @param pod the template, its `spec.nodeName` as written
 */
export function validatePodTemplate(pod: Field<Pod>, options: ValidateOptions): void {
  validateLabels(pod.field("metadata").field("labels"));
  validateAnnotations(pod.field("metadata").field("annotations"));
  validatePodAnnotations(pod);
  validatePodSpec(pod, options);
}

function validatePodSpec(pod: Field<Pod>, options: ValidateOptions): void {
  const spec = pod.field("spec");
  const context = {
    spec: spec.value,
    volumes: validateVolumes(spec.field("volumes"), pod.value.metadata.name ?? ""),
    claimNames: validateResourceClaims(spec.field("resourceClaims")),
    allowPrivileged: options.allowPrivileged ?? true,
  };
  validateContainers(spec.field("containers"), context);
  validateInitContainers(spec.field("initContainers"), context);
  const ephemeral = spec.field("ephemeralContainers");
  validateEphemeralContainers(ephemeral, context);
  if (ephemeral.value && !options.allowEphemeralContainers) {
    ephemeral.forbidden("ephemeral containers cannot be part of a manifest");
  }
  validatePodResources(spec);
  validateHostNetworkPorts(spec);
  spec.field("restartPolicy").oneOf(["Always", "OnFailure", "Never"]);
  spec.field("dnsPolicy").oneOf(["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
  spec.field("preemptionPolicy").requiredOneOf(["PreemptLowerPriority", "Never"]);
  validateLabels(spec.field("nodeSelector"));
  validatePodSecurityContext(spec);
  validateAffinity(spec.field("affinity"));
  validateDnsConfig(spec);
  for (const gate of spec.field("readinessGates").items()) gate.field("conditionType").format(checkQualifiedName);
  validateTopologySpread(spec.field("topologySpreadConstraints"));
  for (const name of ["serviceAccountName", "priorityClassName", "nodeName", "runtimeClassName"] as const) {
    spec.field(name).format(checkDnsSubdomain);
  }
  for (const name of ["hostname", "subdomain"] as const) spec.field(name).format(checkDnsLabel);
  spec.field("activeDeadlineSeconds").between(1, MAX_DEADLINE_SECONDS);
  validateTolerations(spec.field("tolerations"));
  for (const alias of spec.field("hostAliases").items()) {
    alias
      .field("ip")
      .with(alias.value.ip ?? "")
      .format(checkIp);
    for (const name of alias.field("hostnames").items()) name.format(checkDnsSubdomain);
  }
  validateOverhead(spec);
  validateTokenProjections(spec);
  validateProfileAnnotations(pod);
  validateNewerRules(spec);
}

function validateResourceClaims(claims: Field<PodSpec["resourceClaims"]>): ReadonlySet<string> {
  const names = new Set<string>();
  for (const claim of claims.items()) {
    const name = claim.field("name");
    if (name.value !== "" && names.has(name.value)) name.duplicate();
    else name.requiredFormat(checkDnsLabel);
    names.add(name.value);
    const { resourceClaimName, resourceClaimTemplateName } = claim.value;
    if ((resourceClaimName === undefined) === (resourceClaimTemplateName === undefined)) {
      claim.invalid("must have exactly one of resourceClaimName and resourceClaimTemplateName");
    }
    for (const field of ["resourceClaimName", "resourceClaimTemplateName"] as const) {
      claim.field(field).format(checkDnsSubdomain);
    }
  }
  return names;
}

/** Tokens need a service account. */
function validateTokenProjections(spec: Field<PodSpec>): void {
  if (spec.value.serviceAccountName !== undefined) return;
  for (const volume of spec.field("volumes").items()) {
    for (const source of volume.field("projected").field("sources").items()) {
      const token = source.field("serviceAccountToken");
      if (token.value) token.forbidden("must be absent when serviceAccountName is not set");
    }
  }
}

/** Rules added after 1.20: os, scheduling gates, user namespaces, hostnameOverride. */
function validateNewerRules(spec: Field<PodSpec>): void {
  const { hostNetwork, hostUsers, setHostnameAsFQDN, hostnameOverride } = spec.value;
  const os = spec.field("os");
  const osName = os.field("name");
  if ((osName.value as string) === "") osName.required();
  else osName.as(os.path).oneOf(["linux", "windows"]);
  if (osName.value === "linux") refuseWindowsOptions(spec);
  const gates = spec.field("schedulingGates");
  const gateNames = new Set<string>();
  for (const gate of gates.items()) {
    const named = gate.with(gate.value.name);
    named.format(checkQualifiedName);
    if (gateNames.has(named.value)) named.duplicate();
    gateNames.add(named.value);
  }
  if (gates.value && gates.value.length > 0) {
    gates.as(spec.path.child("nodeName")).forbidden("a static pod is bound to its node: schedulingGates must be empty");
  }
  if (hostUsers === false) {
    const upstreamNames = { hostNetwork: "hostNetwork", hostPID: "HostPID", hostIPC: "HostIPC" } as const;
    for (const name of ["hostNetwork", "hostPID", "hostIPC"] as const) {
      const field = spec.field(name).as(spec.path.child(upstreamNames[name]));
      if (field.value) field.forbidden("must be absent when hostUsers is false");
    }
  }
  if (hostnameOverride === undefined) return;
  const override = spec.field("hostnameOverride");
  override.format(checkDnsSubdomain);
  if (hostnameOverride.length > 64) override.tooLong("64 characters");
  if (setHostnameAsFQDN) override.forbidden("must be absent when setHostnameAsFQDN is true");
  if (hostNetwork) override.forbidden("must be absent when hostNetwork is true");
}

function refuseWindowsOptions(spec: Field<PodSpec>): void {
  for (const owner of [spec, ...spec.field("initContainers").items(), ...spec.field("containers").items()]) {
    const options = (owner as Field<Pick<PodSpec, "securityContext">>).field("securityContext").field("windowsOptions");
    if (options.value) options.forbidden("must be absent in a pod for Linux");
  }
}

const MAX_NAMESERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARACTERS = 2048;

/** Source: core validation `validatePodDNSConfig`. */
function validateDnsConfig(spec: Field<PodSpec>): void {
  const config = spec.field("dnsConfig");
  const { nameservers = [], searches = [] } = config.value ?? {};
  const servers = config.field("nameservers");
  if (spec.value.dnsPolicy === "None" && nameservers.length === 0) {
    return (config.value ? servers : config).required("is required when dnsPolicy is None");
  }
  if (nameservers.length > MAX_NAMESERVERS) servers.invalid(`must be at most ${MAX_NAMESERVERS}`);
  for (const server of servers.items()) server.format(checkIp);
  const domains = config.field("searches");
  if (searches.length > MAX_SEARCHES) domains.invalid(`must be at most ${MAX_SEARCHES}`);
  if (byteLength(searches.join(" ")) > MAX_SEARCH_CHARACTERS) {
    domains.invalid(`must have at most ${MAX_SEARCH_CHARACTERS} characters together`);
  }
  for (const search of domains.items()) {
    if (search.value !== ".") search.format((domain) => checkSearchDomain(domain.replace(/\.$/, "")));
  }
  for (const option of config.field("options").items()) {
    if (option.value.name === undefined) option.required("name must not be empty");
  }
}

/** With hostNetwork ports are not mapped: the host port is the container port. */
function validateHostNetworkPorts(spec: Field<PodSpec>): void {
  if (!spec.value.hostNetwork) return;
  for (const container of spec.field("containers").items()) {
    for (const port of container.field("ports").items()) {
      if ((port.value.hostPort ?? 0) === port.value.containerPort) continue;
      port.field("hostPort").invalid("must be the containerPort when hostNetwork is true");
    }
  }
}

const TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations";
const SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/";
const APPARMOR_CONTAINER = "container.apparmor.security.beta.kubernetes.io/";

const tolerationsShape = objectShapeOf(v.object({ items: v.optional(v.array(TolerationSchema)) }));

/** Validates annotations that have a meaning upstream. Source: core validation `ValidatePodSpecificAnnotations`. */
function validatePodAnnotations(pod: Field<Pod>): void {
  const { initContainers = [], containers, ephemeralContainers = [] } = pod.value.spec;
  const names = new Set([...initContainers, ...containers, ...ephemeralContainers].map((container) => container.name));
  const annotations = pod.field("metadata").field("annotations");
  for (const [key, annotation] of annotations.entries()) {
    const { value } = annotation;
    if (key === TOLERATIONS) validateTolerationsText(annotation.as(annotations.path));
    else if (key === SECCOMP_POD || key.startsWith(SECCOMP_CONTAINER)) {
      const reported = annotation.as(annotations.path.child(key));
      if (value.startsWith("localhost/")) reported.with(value.slice("localhost/".length)).format(checkDescendingPath);
      else if (!["runtime/default", "docker/default", "unconfined"].includes(value)) {
        reported.invalid("must be runtime/default, unconfined or localhost/<path>");
      }
    } else if (key.startsWith(APPARMOR_CONTAINER)) {
      const name = key.slice(APPARMOR_CONTAINER.length);
      if (!names.has(name)) annotation.key(name).invalid("there is no container of that name");
      if (!["", "runtime/default", "unconfined"].includes(value) && !value.startsWith("localhost/")) {
        annotation.invalid("must be runtime/default, unconfined or localhost/<profile>");
      }
    }
  }
}

/** An annotation and the field that replaced it must agree. */
function validateProfileAnnotations(pod: Field<Pod>): void {
  const annotations = pod.value.metadata.annotations ?? {};
  const spec = pod.field("spec");
  matchProfile(annotations[SECCOMP_POD], spec.field("securityContext").field("seccompProfile"));
  for (const list of ["initContainers", "containers", "ephemeralContainers"] as const) {
    for (const container of spec.field(list).items()) {
      const { name } = container.value;
      const context = container.field("securityContext");
      matchProfile(annotations[SECCOMP_CONTAINER + name], context.field("seccompProfile"));
      const own = context.field("appArmorProfile");
      const inherited = own.with(own.value ?? spec.value.securityContext.appArmorProfile);
      matchProfile(annotations[APPARMOR_CONTAINER + name], inherited);
    }
  }
}

const ANNOTATIONS_OF_TYPE: ReadonlyMap<string, readonly string[]> = new Map([
  ["Unconfined", ["unconfined"]],
  ["RuntimeDefault", ["runtime/default", "docker/default"]],
]);

type Profile = Field<{ type: string; localhostProfile?: string | undefined } | undefined>;

function matchProfile(annotation: string | undefined, profile: Profile): void {
  if (annotation === undefined || !profile.value) return;
  const { type, localhostProfile = "" } = profile.value;
  const isLocal = annotation.startsWith("localhost/");
  const sameType = type === "Localhost" ? isLocal : ANNOTATIONS_OF_TYPE.get(type)?.includes(annotation);
  const message = `must be what the annotation says, ${annotation}`;
  if (sameType === false) profile.field("type").forbidden(message);
  else if (type === "Localhost" && annotation !== `localhost/${localhostProfile}`) {
    profile.field("localhostProfile").forbidden(message);
  }
}

/** The tolerations annotation holds a JSON list. */
function validateTolerationsText(text: Field<string>): void {
  if (text.value === "") return;
  try {
    const items = { keyOffset: 0, value: parseJson(text.value) };
    const issues: DecodeIssue[] = [];
    const wrapper: SourceNode = { kind: "map", entries: new Map([["items", items]]), offset: 0 };
    const decoded = decodeObject(wrapper, tolerationsShape, text.path, issues) as { items?: Toleration[] };
    if (issues.some(isTypeIssue)) return text.invalid("must be a JSON list of tolerations");
    const errors: FieldError[] = [];
    validateTolerations(new Field(decoded.items, text.path.child(TOLERATIONS), errors));
    text.errors.push(...errors.map((error) => ({ ...error, at: text.at })));
  } catch (error) {
    if (!(error instanceof TextError)) throw error;
    text.invalid("must be a JSON list of tolerations");
  }
}
