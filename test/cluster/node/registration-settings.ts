import type { RegistrationSettings } from "../../../src/cluster/node/node-agent.ts";

/** The settings of a node without any flag, but that no controller attaches volumes. */
export const registrationSettings = (changes: Partial<RegistrationSettings> = {}): RegistrationSettings => ({
  cloudProvider: "",
  providerId: "",
  nodeIp: "",
  registerSchedulable: true,
  enableControllerAttachDetach: false,
  nodeTaints: [],
  ...changes,
});
