import * as v from "valibot";
import { ObjectMetaSchema } from "./meta.ts";
import * as go from "./scalar.ts";

const EndpointAddressSchema = v.object({
  ip: go.text,
  hostname: v.optional(go.text),
  nodeName: v.optional(go.textPointer),
  targetRef: v.optional(go.raw),
});

/** Source: core/v1 `Endpoints`. */
export const EndpointsSchema = v.object({
  metadata: ObjectMetaSchema,
  subsets: v.optional(
    v.array(
      v.object({
        addresses: v.optional(v.array(EndpointAddressSchema)),
        notReadyAddresses: v.optional(v.array(EndpointAddressSchema)),
        ports: v.optional(
          v.array(
            v.object({
              name: v.optional(go.text),
              port: go.int32,
              protocol: v.optional(go.text, "TCP"),
              appProtocol: v.optional(go.textPointer),
            }),
          ),
        ),
      }),
    ),
  ),
});
export type Endpoints = v.InferOutput<typeof EndpointsSchema>;

/** Source: discovery/v1 `EndpointSlice`; `topology` is of v1beta1. */
export const EndpointSliceSchema = v.object({
  metadata: ObjectMetaSchema,
  addressType: go.text,
  endpoints: v.array(
    v.object({
      addresses: go.textList,
      conditions: v.optional(
        v.object({
          ready: v.optional(go.flagPointer),
          serving: v.optional(go.flagPointer),
          terminating: v.optional(go.flagPointer),
        }),
      ),
      hostname: v.optional(go.textPointer),
      targetRef: v.optional(go.raw),
      topology: v.optional(go.textMap),
      deprecatedTopology: v.optional(go.textMap),
      nodeName: v.optional(go.textPointer),
      zone: v.optional(go.textPointer),
      hints: v.optional(go.raw),
    }),
  ),
  ports: v.optional(
    v.array(
      v.object({
        name: v.optional(go.textPointer, ""),
        protocol: v.optional(go.textPointer, "TCP"),
        port: v.optional(go.int32Pointer),
        appProtocol: v.optional(go.textPointer),
      }),
    ),
  ),
});
export type EndpointSlice = v.InferOutput<typeof EndpointSliceSchema>;

/** Label of an EndpointSlice that names its Service. */
export const SERVICE_NAME_LABEL = "kubernetes.io/service-name";
