/**
 * Type of a field: a scalar, or the message it holds. `quantity`: a message that JSON has as a string.
 */
export type FieldType = "string" | "int" | "bool" | "bytes" | "quantity" | Message;

/**
 * One field of a message. `map`: string keys; `list`: repeated; `inline`: an IntOrString; `embed`: its fields are members
 * of the message around it; `present`: it counts even when it is empty.
 */
export type Field = readonly [name: string, type: FieldType, shape?: "list" | "map" | "inline" | "embed" | "present"];

/** Fields of a message by number. Source: generated.proto of the Kubernetes API. */
export interface Message {
  readonly [number: number]: Field;
}

const INT_OR_STRING: Message = { 1: ["type", "int"], 2: ["intVal", "int"], 3: ["strVal", "string"] };
const REQUIREMENT: Message = { 1: ["key", "string"], 2: ["operator", "string"], 3: ["values", "string", "list"] };
const LABEL_SELECTOR: Message = { 1: ["matchLabels", "string", "map"], 2: ["matchExpressions", REQUIREMENT, "list"] };

const HOST_PATH_VOLUME_SOURCE: Message = { 1: ["path", "string"], 2: ["type", "string"] };
const EMPTY_DIR_VOLUME_SOURCE: Message = { 1: ["medium", "string"], 2: ["sizeLimit", "quantity"] };
const KEY_TO_PATH: Message = { 1: ["key", "string"], 2: ["path", "string"], 3: ["mode", "int"] };
// biome-ignore format: a table
const SECRET_VOLUME_SOURCE: Message = {
  1: ["secretName", "string"], 2: ["items", KEY_TO_PATH, "list"], 3: ["defaultMode", "int"], 4: ["optional", "bool"],
};
const NFSVOLUME_SOURCE: Message = { 1: ["server", "string"], 2: ["path", "string"], 3: ["readOnly", "bool"] };
const PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Message = { 1: ["claimName", "string"], 2: ["readOnly", "bool"] };
const OBJECT_FIELD_SELECTOR: Message = { 1: ["apiVersion", "string"], 2: ["fieldPath", "string"] };
// biome-ignore format: a table
const RESOURCE_FIELD_SELECTOR: Message = {
  1: ["containerName", "string"], 2: ["resource", "string"], 3: ["divisor", "quantity"],
};
// biome-ignore format: a table
const DOWNWARD_APIVOLUME_FILE: Message = {
  1: ["path", "string"], 2: ["fieldRef", OBJECT_FIELD_SELECTOR], 3: ["resourceFieldRef", RESOURCE_FIELD_SELECTOR],
  4: ["mode", "int"],
};
// biome-ignore format: a table
const DOWNWARD_APIVOLUME_SOURCE: Message = {
  1: ["items", DOWNWARD_APIVOLUME_FILE, "list"], 2: ["defaultMode", "int"],
};
const LOCAL_OBJECT_REFERENCE: Message = { 1: ["name", "string"] };
// biome-ignore format: a table
const CONFIG_MAP_VOLUME_SOURCE: Message = {
  1: ["localObjectReference", LOCAL_OBJECT_REFERENCE, "embed"], 2: ["items", KEY_TO_PATH, "list"],
  3: ["defaultMode", "int"], 4: ["optional", "bool"],
};
// biome-ignore format: a table
const SECRET_PROJECTION: Message = {
  1: ["localObjectReference", LOCAL_OBJECT_REFERENCE, "embed"], 2: ["items", KEY_TO_PATH, "list"],
  4: ["optional", "bool"],
};
const DOWNWARD_APIPROJECTION: Message = { 1: ["items", DOWNWARD_APIVOLUME_FILE, "list"] };
// biome-ignore format: a table
const CONFIG_MAP_PROJECTION: Message = {
  1: ["localObjectReference", LOCAL_OBJECT_REFERENCE, "embed"], 2: ["items", KEY_TO_PATH, "list"],
  4: ["optional", "bool"],
};
// biome-ignore format: a table
const SERVICE_ACCOUNT_TOKEN_PROJECTION: Message = {
  1: ["audience", "string"], 2: ["expirationSeconds", "int"], 3: ["path", "string"],
};
// biome-ignore format: a table
const VOLUME_PROJECTION: Message = {
  1: ["secret", SECRET_PROJECTION], 2: ["downwardAPI", DOWNWARD_APIPROJECTION],
  3: ["configMap", CONFIG_MAP_PROJECTION], 4: ["serviceAccountToken", SERVICE_ACCOUNT_TOKEN_PROJECTION],
};
const PROJECTED_VOLUME_SOURCE: Message = { 1: ["sources", VOLUME_PROJECTION, "list"], 2: ["defaultMode", "int"] };
const IMAGE_VOLUME_SOURCE: Message = { 1: ["reference", "string"], 2: ["pullPolicy", "string"] };
// biome-ignore format: a table
const VOLUME_SOURCE: Message = {
  1: ["hostPath", HOST_PATH_VOLUME_SOURCE], 2: ["emptyDir", EMPTY_DIR_VOLUME_SOURCE, "present"],
  6: ["secret", SECRET_VOLUME_SOURCE], 7: ["nfs", NFSVOLUME_SOURCE],
  10: ["persistentVolumeClaim", PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE],
  16: ["downwardAPI", DOWNWARD_APIVOLUME_SOURCE], 19: ["configMap", CONFIG_MAP_VOLUME_SOURCE],
  26: ["projected", PROJECTED_VOLUME_SOURCE], 30: ["image", IMAGE_VOLUME_SOURCE],
};
const VOLUME: Message = { 1: ["name", "string"], 2: ["volumeSource", VOLUME_SOURCE, "embed"] };
// biome-ignore format: a table
const CONTAINER_PORT: Message = {
  1: ["name", "string"], 2: ["hostPort", "int"], 3: ["containerPort", "int"], 4: ["protocol", "string"],
  5: ["hostIP", "string"],
};
// biome-ignore format: a table
const CONFIG_MAP_ENV_SOURCE: Message = {
  1: ["localObjectReference", LOCAL_OBJECT_REFERENCE, "embed"], 2: ["optional", "bool"],
};
// biome-ignore format: a table
const SECRET_ENV_SOURCE: Message = {
  1: ["localObjectReference", LOCAL_OBJECT_REFERENCE, "embed"], 2: ["optional", "bool"],
};
// biome-ignore format: a table
const ENV_FROM_SOURCE: Message = {
  1: ["prefix", "string"], 2: ["configMapRef", CONFIG_MAP_ENV_SOURCE], 3: ["secretRef", SECRET_ENV_SOURCE],
};
// biome-ignore format: a table
const CONFIG_MAP_KEY_SELECTOR: Message = {
  1: ["localObjectReference", LOCAL_OBJECT_REFERENCE, "embed"], 2: ["key", "string"], 3: ["optional", "bool"],
};
// biome-ignore format: a table
const SECRET_KEY_SELECTOR: Message = {
  1: ["localObjectReference", LOCAL_OBJECT_REFERENCE, "embed"], 2: ["key", "string"], 3: ["optional", "bool"],
};
// biome-ignore format: a table
const ENV_VAR_SOURCE: Message = {
  1: ["fieldRef", OBJECT_FIELD_SELECTOR], 2: ["resourceFieldRef", RESOURCE_FIELD_SELECTOR],
  3: ["configMapKeyRef", CONFIG_MAP_KEY_SELECTOR], 4: ["secretKeyRef", SECRET_KEY_SELECTOR],
};
const ENV_VAR: Message = { 1: ["name", "string"], 2: ["value", "string"], 3: ["valueFrom", ENV_VAR_SOURCE] };
const RESOURCE_CLAIM: Message = { 1: ["name", "string"], 2: ["request", "string"] };
// biome-ignore format: a table
const RESOURCE_REQUIREMENTS: Message = {
  1: ["limits", "quantity", "map"], 2: ["requests", "quantity", "map"], 3: ["claims", RESOURCE_CLAIM, "list"],
};
// biome-ignore format: a table
const VOLUME_MOUNT: Message = {
  1: ["name", "string"], 2: ["readOnly", "bool"], 3: ["mountPath", "string"], 4: ["subPath", "string"],
  5: ["mountPropagation", "string"], 6: ["subPathExpr", "string"], 7: ["recursiveReadOnly", "string"],
};
const VOLUME_DEVICE: Message = { 1: ["name", "string"], 2: ["devicePath", "string"] };
const EXEC_ACTION: Message = { 1: ["command", "string", "list"] };
const HTTPHEADER: Message = { 1: ["name", "string"], 2: ["value", "string"] };
// biome-ignore format: a table
const HTTPGET_ACTION: Message = {
  1: ["path", "string"], 2: ["port", INT_OR_STRING, "inline"], 3: ["host", "string"], 4: ["scheme", "string"],
  5: ["httpHeaders", HTTPHEADER, "list"],
};
const TCPSOCKET_ACTION: Message = { 1: ["port", INT_OR_STRING, "inline"], 2: ["host", "string"] };
const GRPCACTION: Message = { 1: ["port", "int"], 2: ["service", "string"] };
// biome-ignore format: a table
const PROBE_HANDLER: Message = {
  1: ["exec", EXEC_ACTION], 2: ["httpGet", HTTPGET_ACTION], 3: ["tcpSocket", TCPSOCKET_ACTION],
  4: ["grpc", GRPCACTION],
};
// biome-ignore format: a table
const PROBE: Message = {
  1: ["handler", PROBE_HANDLER, "embed"], 2: ["initialDelaySeconds", "int"], 3: ["timeoutSeconds", "int"],
  4: ["periodSeconds", "int"], 5: ["successThreshold", "int"], 6: ["failureThreshold", "int"],
  7: ["terminationGracePeriodSeconds", "int"],
};
const SLEEP_ACTION: Message = { 1: ["seconds", "int"] };
// biome-ignore format: a table
const HANDLER: Message = {
  1: ["exec", EXEC_ACTION], 2: ["httpGet", HTTPGET_ACTION], 3: ["tcpSocket", TCPSOCKET_ACTION],
  4: ["sleep", SLEEP_ACTION],
};
const LIFECYCLE: Message = { 1: ["postStart", HANDLER], 2: ["preStop", HANDLER], 3: ["stopSignal", "string"] };
const CAPABILITIES: Message = { 1: ["add", "string", "list"], 2: ["drop", "string", "list"] };
// biome-ignore format: a table
const SELINUX_OPTIONS: Message = {
  1: ["user", "string"], 2: ["role", "string"], 3: ["type", "string"], 4: ["level", "string"],
};
// biome-ignore format: a table
const WINDOWS_SECURITY_CONTEXT_OPTIONS: Message = {
  1: ["gmsaCredentialSpecName", "string"], 2: ["gmsaCredentialSpec", "string"], 3: ["runAsUserName", "string"],
};
const SECCOMP_PROFILE: Message = { 1: ["type", "string"], 2: ["localhostProfile", "string"] };
const APP_ARMOR_PROFILE: Message = { 1: ["type", "string"], 2: ["localhostProfile", "string"] };
// biome-ignore format: a table
const SECURITY_CONTEXT: Message = {
  1: ["capabilities", CAPABILITIES], 2: ["privileged", "bool"], 3: ["seLinuxOptions", SELINUX_OPTIONS],
  4: ["runAsUser", "int"], 5: ["runAsNonRoot", "bool"], 6: ["readOnlyRootFilesystem", "bool"],
  7: ["allowPrivilegeEscalation", "bool"], 8: ["runAsGroup", "int"], 9: ["procMount", "string"],
  10: ["windowsOptions", WINDOWS_SECURITY_CONTEXT_OPTIONS], 11: ["seccompProfile", SECCOMP_PROFILE],
  12: ["appArmorProfile", APP_ARMOR_PROFILE],
};
const CONTAINER_RESIZE_POLICY: Message = { 1: ["resourceName", "string"], 2: ["restartPolicy", "string"] };
// biome-ignore format: a table
const CONTAINER: Message = {
  1: ["name", "string"], 2: ["image", "string"], 3: ["command", "string", "list"], 4: ["args", "string", "list"],
  5: ["workingDir", "string"], 6: ["ports", CONTAINER_PORT, "list"], 7: ["env", ENV_VAR, "list"],
  8: ["resources", RESOURCE_REQUIREMENTS], 9: ["volumeMounts", VOLUME_MOUNT, "list"], 10: ["livenessProbe", PROBE],
  11: ["readinessProbe", PROBE], 12: ["lifecycle", LIFECYCLE], 13: ["terminationMessagePath", "string"],
  14: ["imagePullPolicy", "string"], 15: ["securityContext", SECURITY_CONTEXT], 16: ["stdin", "bool"],
  17: ["stdinOnce", "bool"], 18: ["tty", "bool"], 19: ["envFrom", ENV_FROM_SOURCE, "list"],
  20: ["terminationMessagePolicy", "string"], 21: ["volumeDevices", VOLUME_DEVICE, "list"],
  22: ["startupProbe", PROBE], 23: ["resizePolicy", CONTAINER_RESIZE_POLICY, "list"], 24: ["restartPolicy", "string"],
};
// EphemeralContainerCommon has the fields and numbers of Container.
// biome-ignore format: a table
const EPHEMERAL_CONTAINER: Message = {
  1: ["ephemeralContainerCommon", CONTAINER, "embed"], 2: ["targetContainerName", "string"],
};
const SYSCTL: Message = { 1: ["name", "string"], 2: ["value", "string"] };
// biome-ignore format: a table
const POD_SECURITY_CONTEXT: Message = {
  1: ["seLinuxOptions", SELINUX_OPTIONS], 2: ["runAsUser", "int"], 3: ["runAsNonRoot", "bool"],
  4: ["supplementalGroups", "int", "list"], 5: ["fsGroup", "int"], 6: ["runAsGroup", "int"],
  7: ["sysctls", SYSCTL, "list"], 8: ["windowsOptions", WINDOWS_SECURITY_CONTEXT_OPTIONS],
  9: ["fsGroupChangePolicy", "string"], 10: ["seccompProfile", SECCOMP_PROFILE],
  11: ["appArmorProfile", APP_ARMOR_PROFILE], 12: ["supplementalGroupsPolicy", "string"],
  13: ["seLinuxChangePolicy", "string"],
};
// biome-ignore format: a table
const NODE_SELECTOR_REQUIREMENT: Message = {
  1: ["key", "string"], 2: ["operator", "string"], 3: ["values", "string", "list"],
};
// biome-ignore format: a table
const NODE_SELECTOR_TERM: Message = {
  1: ["matchExpressions", NODE_SELECTOR_REQUIREMENT, "list"], 2: ["matchFields", NODE_SELECTOR_REQUIREMENT, "list"],
};
const NODE_SELECTOR: Message = { 1: ["nodeSelectorTerms", NODE_SELECTOR_TERM, "list"] };
const PREFERRED_SCHEDULING_TERM: Message = { 1: ["weight", "int"], 2: ["preference", NODE_SELECTOR_TERM] };
// biome-ignore format: a table
const NODE_AFFINITY: Message = {
  1: ["requiredDuringSchedulingIgnoredDuringExecution", NODE_SELECTOR],
  2: ["preferredDuringSchedulingIgnoredDuringExecution", PREFERRED_SCHEDULING_TERM, "list"],
};
// biome-ignore format: a table
const POD_AFFINITY_TERM: Message = {
  1: ["labelSelector", LABEL_SELECTOR], 2: ["namespaces", "string", "list"], 3: ["topologyKey", "string"],
  4: ["namespaceSelector", LABEL_SELECTOR], 5: ["matchLabelKeys", "string", "list"],
  6: ["mismatchLabelKeys", "string", "list"],
};
const WEIGHTED_POD_AFFINITY_TERM: Message = { 1: ["weight", "int"], 2: ["podAffinityTerm", POD_AFFINITY_TERM] };
// biome-ignore format: a table
const POD_AFFINITY: Message = {
  1: ["requiredDuringSchedulingIgnoredDuringExecution", POD_AFFINITY_TERM, "list"],
  2: ["preferredDuringSchedulingIgnoredDuringExecution", WEIGHTED_POD_AFFINITY_TERM, "list"],
};
// biome-ignore format: a table
const POD_ANTI_AFFINITY: Message = {
  1: ["requiredDuringSchedulingIgnoredDuringExecution", POD_AFFINITY_TERM, "list"],
  2: ["preferredDuringSchedulingIgnoredDuringExecution", WEIGHTED_POD_AFFINITY_TERM, "list"],
};
// biome-ignore format: a table
const AFFINITY: Message = {
  1: ["nodeAffinity", NODE_AFFINITY], 2: ["podAffinity", POD_AFFINITY], 3: ["podAntiAffinity", POD_ANTI_AFFINITY],
};
// biome-ignore format: a table
const TOLERATION: Message = {
  1: ["key", "string"], 2: ["operator", "string"], 3: ["value", "string"], 4: ["effect", "string"],
  5: ["tolerationSeconds", "int"],
};
const HOST_ALIAS: Message = { 1: ["ip", "string"], 2: ["hostnames", "string", "list"] };
const POD_DNSCONFIG_OPTION: Message = { 1: ["name", "string"], 2: ["value", "string"] };
// biome-ignore format: a table
const POD_DNSCONFIG: Message = {
  1: ["nameservers", "string", "list"], 2: ["searches", "string", "list"],
  3: ["options", POD_DNSCONFIG_OPTION, "list"],
};
const POD_READINESS_GATE: Message = { 1: ["conditionType", "string"] };
// biome-ignore format: a table
const TOPOLOGY_SPREAD_CONSTRAINT: Message = {
  1: ["maxSkew", "int"], 2: ["topologyKey", "string"], 3: ["whenUnsatisfiable", "string"],
  4: ["labelSelector", LABEL_SELECTOR], 5: ["minDomains", "int"], 6: ["nodeAffinityPolicy", "string"],
  7: ["nodeTaintsPolicy", "string"], 8: ["matchLabelKeys", "string", "list"],
};
const POD_OS: Message = { 1: ["name", "string"] };
const POD_SCHEDULING_GATE: Message = { 1: ["name", "string"] };
/** A PodSpec, without volumes of storage that only clusters have. Source: generated.proto of core/v1. */
// biome-ignore format: a table
export const POD_SPEC: Message = {
  1: ["volumes", VOLUME, "list"], 2: ["containers", CONTAINER, "list"], 3: ["restartPolicy", "string"],
  4: ["terminationGracePeriodSeconds", "int"], 5: ["activeDeadlineSeconds", "int"], 6: ["dnsPolicy", "string"],
  7: ["nodeSelector", "string", "map"], 8: ["serviceAccountName", "string"], 9: ["serviceAccount", "string"],
  10: ["nodeName", "string"], 11: ["hostNetwork", "bool"], 12: ["hostPID", "bool"], 13: ["hostIPC", "bool"],
  14: ["securityContext", POD_SECURITY_CONTEXT], 15: ["imagePullSecrets", LOCAL_OBJECT_REFERENCE, "list"],
  16: ["hostname", "string"], 17: ["subdomain", "string"], 18: ["affinity", AFFINITY],
  19: ["schedulerName", "string"], 20: ["initContainers", CONTAINER, "list"],
  21: ["automountServiceAccountToken", "bool"], 22: ["tolerations", TOLERATION, "list"],
  23: ["hostAliases", HOST_ALIAS, "list"], 24: ["priorityClassName", "string"], 25: ["priority", "int"],
  26: ["dnsConfig", POD_DNSCONFIG], 27: ["shareProcessNamespace", "bool"],
  28: ["readinessGates", POD_READINESS_GATE, "list"], 29: ["runtimeClassName", "string"],
  30: ["enableServiceLinks", "bool"], 31: ["preemptionPolicy", "string"], 32: ["overhead", "quantity", "map"],
  33: ["topologySpreadConstraints", TOPOLOGY_SPREAD_CONSTRAINT, "list"],
  34: ["ephemeralContainers", EPHEMERAL_CONTAINER, "list"], 35: ["setHostnameAsFQDN", "bool"], 36: ["os", POD_OS],
  37: ["hostUsers", "bool"], 38: ["schedulingGates", POD_SCHEDULING_GATE, "list"],
  40: ["resources", RESOURCE_REQUIREMENTS], 41: ["hostnameOverride", "string"],
};
