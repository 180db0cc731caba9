import * as v from "valibot";
import { DockerClient } from "../../src/docker/engine/docker-client.ts";
import { VolumeSchema } from "../../src/docker/engine/schemas.ts";

/** The Docker client with the calls that only tests make. */
export class TestDocker extends DockerClient {
  /** Waits until it has ended. */
  async waitContainer(id: string): Promise<{ exitCode: number }> {
    const schema = v.object({ StatusCode: v.number() });
    const request = { query: { condition: "not-running" }, timeoutMs: 0 };
    const { StatusCode } = await this.call("POST", `/containers/${id}/wait`, schema, request);
    return { exitCode: StatusCode };
  }

  async tagImage(reference: string, repo: string, tag: string): Promise<void> {
    await this.send("POST", `/images/${reference}/tag`, { query: { repo, tag } });
  }

  async listVolumes(filters: Readonly<Record<string, readonly string[]>>) {
    const schema = v.object({ Volumes: v.nullish(v.array(VolumeSchema), []) });
    return (await this.call("GET", "/volumes", schema, { query: { filters: JSON.stringify(filters) } })).Volumes;
  }

  async createNetwork(body: { Name: string; IPAM?: object | undefined; EnableIPv6?: boolean }): Promise<void> {
    await this.send("POST", "/networks/create", { json: { CheckDuplicate: true, ...body } });
  }

  async removeNetwork(name: string): Promise<void> {
    await this.send("DELETE", `/networks/${name}`);
  }

  /** The machine's own address in a network: that of its bridge, which is down while no container is in it. */
  async gatewayOf(network: string): Promise<string> {
    const config = v.object({ Subnet: v.string(), Gateway: v.optional(v.string()) });
    const schema = v.object({ IPAM: v.object({ Config: v.array(config) }) });
    const [{ Subnet, Gateway } = { Subnet: "" }] = (await this.call("GET", `/networks/${network}`, schema)).IPAM.Config;
    // Without an address of its own choice Docker takes the first one.
    return Gateway ?? Subnet.replace(/0\/\d+$/, "1");
  }

  async disconnectNetwork(name: string, body: { Container: string; Force: boolean }): Promise<void> {
    await this.send("POST", `/networks/${name}/disconnect`, { json: body });
  }
}
