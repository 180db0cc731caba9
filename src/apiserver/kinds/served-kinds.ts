import type { ObjectKind } from "../../base/model/desired-state.ts";
import { type ResourceDefinition, ResourceRegistry } from "../resource-definition.ts";
import { CONFIG_MAP, SECRET } from "./config-kinds.ts";
import { INGRESS, INGRESS_CLASS } from "./ingress-kinds.ts";
import { EVENT, LEASE, NAMESPACE, NODE } from "./node-kinds.ts";
import { POD } from "./pod-kind.ts";
import { ENDPOINT_SLICE, ENDPOINTS, SERVICE } from "./service-kind.ts";
import { PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS } from "./volume-kinds.ts";
import {
  CONTROLLER_REVISION,
  CRON_JOB,
  DAEMON_SET,
  DEPLOYMENT,
  JOB,
  POD_TEMPLATE,
  REPLICA_SET,
  REPLICATION_CONTROLLER,
  STATEFUL_SET,
} from "./workload-kinds.ts";

/** Kinds that manifests have too: all of them are served. */
type ManifestKind = ObjectKind | "Pod" | "ConfigMap" | "Secret";

/** Every kind the API serves, in the order of discovery: a kind is added by its definition and a line here. */
const KINDS = {
  Namespace: NAMESPACE,
  Node: NODE,
  Pod: POD,
  ConfigMap: CONFIG_MAP,
  Secret: SECRET,
  Event: EVENT,
  Deployment: DEPLOYMENT,
  ReplicaSet: REPLICA_SET,
  ControllerRevision: CONTROLLER_REVISION,
  StatefulSet: STATEFUL_SET,
  DaemonSet: DAEMON_SET,
  Job: JOB,
  CronJob: CRON_JOB,
  ReplicationController: REPLICATION_CONTROLLER,
  PodTemplate: POD_TEMPLATE,
  Service: SERVICE,
  Ingress: INGRESS,
  IngressClass: INGRESS_CLASS,
  Endpoints: ENDPOINTS,
  EndpointSlice: ENDPOINT_SLICE,
  PersistentVolumeClaim: PERSISTENT_VOLUME_CLAIM,
  PersistentVolume: PERSISTENT_VOLUME,
  StorageClass: STORAGE_CLASS,
  Lease: LEASE,
} satisfies Record<ManifestKind, ResourceDefinition> & Record<string, ResourceDefinition>;

export const SERVED_KINDS: readonly ResourceDefinition[] = Object.values(KINDS);

export const buildRegistry = (): ResourceRegistry => new ResourceRegistry(SERVED_KINDS);
