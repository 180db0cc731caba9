import { machine } from "../machine.ts";

/** node:os of the simulated machine. */
export * from "node:os";

export const hostname = () => machine.hostName;

export const networkInterfaces = () => ({
  eth0: [{ address: "10.0.0.5", family: "IPv4", internal: false, netmask: "255.255.255.0", mac: "", cidr: null }],
});
