import * as v from "valibot";
import { ObjectMetaSchema } from "./meta.ts";
import {
  flag,
  flagPointer,
  int32,
  int32Pointer,
  intOrString,
  raw,
  text,
  textList,
  textMap,
  textPointer,
} from "./scalar.ts";

/** Source: core/v1 `ServicePort`. */
export const ServicePortSchema = v.object({
  name: v.optional(text),
  protocol: v.optional(text, "TCP"),
  appProtocol: v.optional(textPointer),
  port: int32,
  /** Default: `port`. */
  targetPort: v.optional(intOrString),
  nodePort: v.optional(int32),
});
export type ServicePort = v.InferOutput<typeof ServicePortSchema>;

/** Source: core/v1 `Service`. */
export const ServiceSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: v.object({
    ports: v.optional(v.array(ServicePortSchema)),
    selector: v.optional(textMap),
    clusterIP: v.optional(text),
    clusterIPs: v.optional(textList),
    type: v.optional(text, "ClusterIP"),
    externalIPs: v.optional(textList),
    sessionAffinity: v.optional(text),
    loadBalancerIP: v.optional(text),
    loadBalancerSourceRanges: v.optional(textList),
    loadBalancerClass: v.optional(textPointer),
    externalName: v.optional(text),
    externalTrafficPolicy: v.optional(text),
    internalTrafficPolicy: v.optional(textPointer),
    healthCheckNodePort: v.optional(int32),
    publishNotReadyAddresses: v.optional(flag),
    sessionAffinityConfig: v.optional(
      v.object({ clientIP: v.optional(v.object({ timeoutSeconds: v.optional(int32Pointer) })) }),
    ),
    ipFamilies: v.optional(textList),
    ipFamily: v.optional(textPointer),
    ipFamilyPolicy: v.optional(textPointer),
    allocateLoadBalancerNodePorts: v.optional(flagPointer),
    trafficDistribution: v.optional(textPointer),
    topologyKeys: v.optional(textList),
  }),
  status: v.optional(raw),
});
export type Service = v.InferOutput<typeof ServiceSchema>;

/** Upstream's range of node ports. */
export const FIRST_NODE_PORT = 30000;
export const NODE_PORTS = 2768;
