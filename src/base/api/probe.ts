import * as v from "valibot";
import { int32, int64, int64Pointer, intOrString, oneOf, text, textList, textPointer } from "./scalar.ts";

/** Source: core/v1 `ExecAction`: argv, run without a shell. */
export const ExecActionSchema = v.object({ command: v.optional(textList) });
export type ExecAction = v.InferOutput<typeof ExecActionSchema>;

/** Source: core/v1 `HTTPHeader`. */
export const HTTPHeaderSchema = v.object({ name: text, value: text });

/** Source: core/v1 `HTTPGetAction`. */
export const HTTPGetActionSchema = v.object({
  path: v.optional(text, "/"),
  /** A number, or the name of a container port. */
  port: intOrString,
  /** Default: the pod IP. */
  host: v.optional(text),
  scheme: v.optional(oneOf(["HTTP", "HTTPS"]), "HTTP"),
  httpHeaders: v.optional(v.array(HTTPHeaderSchema)),
});
export type HTTPGetAction = v.InferOutput<typeof HTTPGetActionSchema>;

/** Source: core/v1 `TCPSocketAction`. */
export const TCPSocketActionSchema = v.object({
  /** A number, or the name of a container port. */
  port: intOrString,
  /** Default: the pod IP. */
  host: v.optional(text),
});
export type TCPSocketAction = v.InferOutput<typeof TCPSocketActionSchema>;

/** Source: core/v1 `GRPCAction`: grpc.health.v1 Check. */
export const GRPCActionSchema = v.object({
  port: int32,
  service: v.optional(textPointer, ""),
});
export type GRPCAction = v.InferOutput<typeof GRPCActionSchema>;

/** Source: core/v1 `SleepAction`. */
export const SleepActionSchema = v.object({ seconds: int64 });
export type SleepAction = v.InferOutput<typeof SleepActionSchema>;

/** When and how often one container is probed, and by what. Source: core/v1 `Probe`. */
export const ProbeSchema = v.object({
  exec: v.optional(ExecActionSchema),
  httpGet: v.optional(HTTPGetActionSchema),
  tcpSocket: v.optional(TCPSocketActionSchema),
  grpc: v.optional(GRPCActionSchema),
  /** Wait after container start before the first attempt. Absent is 0. */
  initialDelaySeconds: v.optional(int32),
  timeoutSeconds: v.optional(int32, 1),
  periodSeconds: v.optional(int32, 10),
  successThreshold: v.optional(int32, 1),
  failureThreshold: v.optional(int32, 3),
  /** Overrides the pod's grace period when this probe kills. */
  terminationGracePeriodSeconds: v.optional(int64Pointer),
});
export type Probe = v.InferOutput<typeof ProbeSchema>;

/** Source: core/v1 `LifecycleHandler`. */
export const LifecycleHandlerSchema = v.object({
  exec: v.optional(ExecActionSchema),
  httpGet: v.optional(HTTPGetActionSchema),
  tcpSocket: v.optional(TCPSocketActionSchema),
  sleep: v.optional(SleepActionSchema),
});
export type LifecycleHandler = v.InferOutput<typeof LifecycleHandlerSchema>;

/** Source: core/v1 `Lifecycle`. */
export const LifecycleSchema = v.object({
  postStart: v.optional(LifecycleHandlerSchema),
  preStop: v.optional(LifecycleHandlerSchema),
  /** e.g. `SIGUSR1`; overrides the image's STOPSIGNAL. */
  stopSignal: v.optional(textPointer),
});
export type Lifecycle = v.InferOutput<typeof LifecycleSchema>;
