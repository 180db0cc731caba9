import * as v from "valibot";
import { DockerClient } from "../../src/docker/engine/docker-client.ts";
import { VolumeSchema } from "../../src/docker/engine/schemas.ts";

const AnyResponse = v.object({});

/** The Docker client with the calls that only tests make. */
export class TestDocker extends DockerClient {
  async killContainer(id: string, signal: string): Promise<void> {
    await this.command(`/containers/${id}/kill`, { signal }, {});
  }

  /** Waits until it has ended. */
  async waitContainer(id: string): Promise<{ exitCode: number }> {
    const schema = v.object({ StatusCode: v.number() });
    const path = `/containers/${id}/wait`;
    const { StatusCode } = await this.post(path, schema, undefined, { condition: "not-running" }, { timeoutMs: 0 });
    return { exitCode: StatusCode };
  }

  async tagImage(reference: string, repo: string, tag: string): Promise<void> {
    await this.command(`/images/${reference}/tag`, { repo, tag }, {});
  }

  async listVolumes(filters: Readonly<Record<string, readonly string[]>>) {
    const schema = v.object({ Volumes: v.nullish(v.array(VolumeSchema), []) });
    return (await this.get("/volumes", schema, { filters: JSON.stringify(filters) }, {})).Volumes;
  }

  async createNetwork(body: { Name: string; IPAM?: object | undefined }): Promise<void> {
    await this.post("/networks/create", AnyResponse, { CheckDuplicate: true, ...body }, undefined, {});
  }

  async removeNetwork(name: string): Promise<void> {
    await this.delete(`/networks/${name}`, {}, {});
  }

  async disconnectNetwork(name: string, body: { Container: string; Force: boolean }): Promise<void> {
    await this.command(`/networks/${name}/disconnect`, {}, {}, body);
  }
}
