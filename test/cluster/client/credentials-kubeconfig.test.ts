import { describe, expect, test } from "bun:test";
import { parseKubeconfig } from "../../../src/cluster/client/credentials.ts";

const PATH = "/etc/kubernetes/kubelet.conf";
const config = (changes: object = {}) => ({
  apiVersion: "v1",
  kind: "Config",
  clusters: [{ name: "c", cluster: { server: "https://10.0.0.1:6443", "certificate-authority": "pki/ca.crt" } }],
  users: [{ name: "u", user: { "client-certificate": "/var/lib/kubelet/pki/client.pem", token: "s3cret" } }],
  contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
  "current-context": "x",
  ...changes,
});

describe("the current context of a kubeconfig", () => {
  test("paths are relative to the file", () => {
    const { cluster, user } = parseKubeconfig(config(), PATH);
    expect(cluster["certificate-authority"]).toBe("/etc/kubernetes/pki/ca.crt");
    expect(user["client-certificate"]).toBe("/var/lib/kubelet/pki/client.pem");
  });

  test("a context without a user has no credentials", () => {
    const contexts = [{ name: "x", context: { cluster: "c" } }];
    expect(parseKubeconfig(config({ contexts }), PATH).user).toEqual({});
  });

  test("without current-context the first context counts", () => {
    expect(parseKubeconfig(config({ "current-context": undefined }), PATH).cluster.server).toBe(
      "https://10.0.0.1:6443",
    );
  });

  test.each([
    { what: { "current-context": "y" }, want: 'there is no context "y" (current-context)' },
    { what: { clusters: [] }, want: 'there is no cluster "c"' },
    { what: { clusters: [{ name: "c", cluster: { server: "10.0.0.1" } }] }, want: 'server "10.0.0.1" is no URL' },
    { what: { clusters: "x" }, want: "clusters must be" },
  ])("$want", ({ what, want }) => {
    expect(() => parseKubeconfig(config(what), PATH)).toThrow(`Kubeconfig "${PATH}": ${want}`);
  });

  test("errors show no credentials", () => {
    const users = [{ name: "u", user: { token: ["s3cret"] } }];
    expect(() => parseKubeconfig(config({ users }), PATH)).toThrow(
      /^(?!.*s3cret).*users\.0\.user\.token must be string/,
    );
  });
});
