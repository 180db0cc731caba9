import * as v from "valibot";
import { ObjectMetaSchema } from "./meta.ts";
import * as go from "./scalar.ts";

/** Source: core/v1 `ServicePort`. */
export const ServicePortSchema = v.object({
  name: v.optional(go.text),
  protocol: v.optional(go.text, "TCP"),
  appProtocol: v.optional(go.textPointer),
  port: go.int32,
  /** Default: `port`. */
  targetPort: v.optional(go.intOrString),
  nodePort: v.optional(go.int32),
});
export type ServicePort = v.InferOutput<typeof ServicePortSchema>;

/** Source: core/v1 `Service`. */
export const ServiceSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: v.object({
    ports: v.optional(v.array(ServicePortSchema)),
    selector: v.optional(go.textMap),
    clusterIP: v.optional(go.text),
    clusterIPs: v.optional(go.textList),
    type: v.optional(go.text, "ClusterIP"),
    externalIPs: v.optional(go.textList),
    sessionAffinity: v.optional(go.text),
    loadBalancerIP: v.optional(go.text),
    loadBalancerSourceRanges: v.optional(go.textList),
    loadBalancerClass: v.optional(go.textPointer),
    externalName: v.optional(go.text),
    externalTrafficPolicy: v.optional(go.text),
    internalTrafficPolicy: v.optional(go.textPointer),
    healthCheckNodePort: v.optional(go.int32),
    publishNotReadyAddresses: v.optional(go.flag),
    sessionAffinityConfig: v.optional(
      v.object({ clientIP: v.optional(v.object({ timeoutSeconds: v.optional(go.int32Pointer) })) }),
    ),
    ipFamilies: v.optional(go.textList),
    ipFamily: v.optional(go.textPointer),
    ipFamilyPolicy: v.optional(go.textPointer),
    allocateLoadBalancerNodePorts: v.optional(go.flagPointer),
    trafficDistribution: v.optional(go.textPointer),
    topologyKeys: v.optional(go.textList),
  }),
  status: v.optional(go.raw),
});
export type Service = v.InferOutput<typeof ServiceSchema>;

/** Upstream's range of node ports. */
export const FIRST_NODE_PORT = 30000;
export const NODE_PORTS = 2768;
