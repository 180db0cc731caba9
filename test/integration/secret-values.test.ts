import { expect, test } from "bun:test";
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Encrypter, generateIdentity, identityToRecipient } from "age-encryption";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { HOST, object, sleeper } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";

async function environmentOf(node: TestNode): Promise<string[]> {
  const { Id } = await node.runningContainer("app");
  return (await node.docker.inspectContainer(Id)).Config.Env;
}

const withKeys = (secret: string, ...keys: string[]) => {
  const env = keys.map((key) => ({ name: key, valueFrom: { secretKeyRef: { name: secret, key } } }));
  return sleeper("web", { env }, HOST);
};

describeWithEngine("values of Secrets from outside the manifests", () => {
  test.concurrent("kubelet-ts.io/secret-from: files and systemd credentials, which nothing shows", async () => {
    const node = testNode();
    const file = join(node.directory, "password");
    const credentials = join(node.directory, "credentials");
    mkdirSync(credentials);
    writeFileSync(join(credentials, "token"), "s3cret-credential");
    const annotations = { "kubelet-ts.io/secret-from": `password=file:${file},token=credential:token` };
    node.writeManifest("secret.json", object("Secret", "db", {}, { annotations }));
    node.writeManifest("web.json", withKeys("db", "password", "token"));
    const kubelet = await node.start([], { prefix: ["env", `CREDENTIALS_DIRECTORY=${credentials}`] });
    await node.untilLogged(
      kubelet,
      `Secret "default/db", key password: kubelet-ts.io/secret-from: "${file}" cannot be read`,
    );
    writeFileSync(file, "s3cret-first");
    await node.until("the container to run", async () => (await environmentOf(node)).includes("password=s3cret-first"));
    expect(await environmentOf(node)).toContain("token=s3cret-credential");
    writeFileSync(file, "s3cret-second");
    await node.until("the new value", async () => (await environmentOf(node)).includes("password=s3cret-second"));

    const { Id } = await node.runningContainer("app");
    await kubelet.stop();
    renameSync(file, `${file}.away`);
    const again = await node.start([], { prefix: ["env", `CREDENTIALS_DIRECTORY=${credentials}`] });
    await node.untilLogged(again, `"${file}" cannot be read`);
    await node.until("the pod to be listed", async () => (await node.pods()).length > 0);
    expect((await node.runningContainer("app")).Id).toBe(Id);
    mkdirSync(join(node.directory, "..1"));
    writeFileSync(join(node.directory, "..1", "password"), "s3cret-third");
    symlinkSync("..1/password", file);
    await node.until("the value behind a link", async () =>
      (await environmentOf(node)).includes("password=s3cret-third"),
    );

    const shown = await Promise.all([
      node.run("get secret db -o yaml"),
      node.run("get pods -o yaml"),
      node.run("describe pod web"),
      node.run("events"),
    ]);
    const pods = JSON.stringify(await node.pods());
    const all = shown.map(({ stdout, stderr }) => stdout + stderr).join("") + kubelet.log + again.log + pods;
    expect(all).toContain("kubelet-ts.io/secret-from");
    for (const value of ["s3cret-first", "s3cret-second", "s3cret-third", "s3cret-credential"]) {
      expect(all).not.toContain(value);
      expect(all).not.toContain(btoa(value));
    }
  });

  test.concurrent("--manifest-identity-file: an encrypted manifest", async () => {
    const node = testNode();
    const identity = await generateIdentity();
    const identityFile = join(node.directory, "identity.txt");
    writeFileSync(identityFile, `${identity}\n`, { mode: 0o600 });
    const encrypter = new Encrypter();
    encrypter.addRecipient(await identityToRecipient(identity));
    const secret = object("Secret", "db", { stringData: { password: "s3cret-of-age" } });
    writeFileSync(join(node.manifestDir, "db.json.age"), await encrypter.encrypt(JSON.stringify(secret)));
    node.writeManifest("web.json", withKeys("db", "password"));
    const without = await node.start();
    await node.untilLogged(without, "--manifest-identity-file");
    await without.stop();
    const kubelet = await node.start([`--manifest-identity-file=${identityFile}`]);
    await node.until("the container to run", async () =>
      (await environmentOf(node)).includes("password=s3cret-of-age"),
    );
    expect(kubelet.log).not.toContain("s3cret-of-age");
  });
});
