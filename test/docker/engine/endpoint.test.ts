import { expect, test } from "bun:test";
import { DockerUnreachableError } from "../../../src/docker/engine/docker-error.ts";
import { endpointText, parseEndpoint } from "../../../src/docker/engine/endpoint.ts";

test.each([
  { when: "nothing is said", flag: "", env: {}, want: "unix:///var/run/docker.sock" },
  { when: "DOCKER_HOST is set", flag: "", env: { DOCKER_HOST: "unix:///run/x.sock" }, want: "unix:///run/x.sock" },
  {
    when: "the flag goes before DOCKER_HOST",
    flag: "unix:///a.sock",
    env: { DOCKER_HOST: "unix:///b.sock" },
    want: "unix:///a.sock",
  },
  { when: "a bare path", flag: "/run/docker.sock", env: {}, want: "unix:///run/docker.sock" },
  { when: "tcp with port", flag: "tcp://10.0.0.2:2375", env: {}, want: "tcp://10.0.0.2:2375" },
  { when: "tcp without port", flag: "tcp://engine", env: {}, want: "tcp://engine:2375" },
  { when: "port 80 is kept", flag: "tcp://engine:80", env: {}, want: "tcp://engine:80" },
  { when: "http is tcp", flag: "http://127.0.0.1:4000/", env: {}, want: "tcp://127.0.0.1:4000" },
  { when: "IPv6", flag: "tcp://[::1]:2375", env: {}, want: "tcp://[::1]:2375" },
])("$when: $want", ({ flag, env, want }) => {
  expect(endpointText(parseEndpoint(flag, env))).toBe(want);
});

test("DOCKER_TLS_VERIFY wants TLS on 2376 with the files of DOCKER_CERT_PATH", () => {
  expect(parseEndpoint("tcp://engine", { DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: "/certs" })).toEqual({
    kind: "tcp",
    host: "engine",
    port: 2376,
    tls: { caFile: "/certs/ca.pem", certFile: "/certs/cert.pem", keyFile: "/certs/key.pem", verify: true },
  });
});

test.each([
  { flag: "ssh://me@host", says: "ssh:// is not supported" },
  { flag: "docker.sock", says: "give unix:///path" },
  { flag: "unix://relative.sock", says: "starts with /" },
  { flag: `unix:///${"x".repeat(120)}`, says: "at most 107 bytes" },
  { flag: "tcp://user@host:1", says: "give only tcp://host:port" },
  { flag: "tcp://host:1/path", says: "give only tcp://host:port" },
  { flag: "unix://", says: "starts with /" },
])("$flag is refused: $says", ({ flag, says }) => {
  const attempt = () => parseEndpoint(flag, {});
  expect(attempt).toThrow(DockerUnreachableError);
  expect(attempt).toThrow(says);
  expect(attempt).toThrow("--docker-endpoint");
});
