import * as v from "valibot";
import { ObjectMetaSchema } from "./meta.ts";
import { flagPointer, int32, int32Pointer, raw, text, textList, textMap, textPointer } from "./scalar.ts";

const EndpointAddressSchema = v.object({
  ip: text,
  hostname: v.optional(text),
  nodeName: v.optional(textPointer),
  targetRef: v.optional(raw),
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
              name: v.optional(text),
              port: int32,
              protocol: v.optional(text, "TCP"),
              appProtocol: v.optional(textPointer),
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
  addressType: text,
  endpoints: v.array(
    v.object({
      addresses: textList,
      conditions: v.optional(
        v.object({
          ready: v.optional(flagPointer),
          serving: v.optional(flagPointer),
          terminating: v.optional(flagPointer),
        }),
      ),
      hostname: v.optional(textPointer),
      targetRef: v.optional(raw),
      topology: v.optional(textMap),
      deprecatedTopology: v.optional(textMap),
      nodeName: v.optional(textPointer),
      zone: v.optional(textPointer),
      hints: v.optional(raw),
    }),
  ),
  ports: v.optional(
    v.array(
      v.object({
        name: v.optional(textPointer, ""),
        protocol: v.optional(textPointer, "TCP"),
        port: v.optional(int32Pointer),
        appProtocol: v.optional(textPointer),
      }),
    ),
  ),
});
export type EndpointSlice = v.InferOutput<typeof EndpointSliceSchema>;

/** Label of an EndpointSlice that names its Service. */
export const SERVICE_NAME_LABEL = "kubernetes.io/service-name";
