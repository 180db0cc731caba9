import type { Pod } from "../api/pod.ts";
import type { PodTemplateSpec } from "../api/workload.ts";
import { computeHostPorts } from "../plan/host-ports.ts";

/** Whether two pods of the template cannot run on one node together. */
export const hasHostPorts = (template: PodTemplateSpec): boolean => computeHostPorts(template as Pod).length > 0;
