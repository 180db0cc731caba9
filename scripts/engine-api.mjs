import http from "node:http";
import { CannotContinue } from "./say.mjs";

/** Where an engine listens. @typedef {{ name: string, connect: { socketPath: string } | { host: string, port: number } }} Endpoint */

const DEFAULT_SOCKET = "/var/run/docker.sock";

/**
 * DOCKER_HOST, else the usual socket.
 * @param {string | undefined} dockerHost
 * @returns {Endpoint}
 */
export function parseEndpoint(dockerHost = process.env.DOCKER_HOST) {
  if (!dockerHost) return { name: DEFAULT_SOCKET, connect: { socketPath: DEFAULT_SOCKET } };
  const unix = /^unix:\/\/(\/.+)$/.exec(dockerHost);
  if (unix) return { name: unix[1], connect: { socketPath: unix[1] } };
  const tcp = /^(?:tcp|http):\/\/\[?([^/\]]+?)\]?:(\d+)\/?$/.exec(dockerHost);
  if (tcp) return { name: dockerHost, connect: { host: tcp[1], port: Number(tcp[2]) } };
  throw new CannotContinue(`DOCKER_HOST is "${dockerHost}", which these scripts cannot reach.`, [
    "Use unix:///path/to/docker.sock or tcp://host:port, or unset it to use /var/run/docker.sock.",
  ]);
}

/**
 * One call to the Engine API, unversioned path, answer read to its end.
 * @param {Endpoint} endpoint
 * @param {string} method
 * @param {string} path
 * @param {{ json?: unknown, tar?: Buffer, timeoutMs?: number }} [options] `timeoutMs`: silence, not total time
 * @returns {Promise<{ status: number, text: string, bytes: Buffer }>} rejects with the system error (`code`) when nothing answers
 */
export function callEngine(endpoint, method, path, options = {}) {
  const body = options.tar ?? (options.json === undefined ? undefined : Buffer.from(JSON.stringify(options.json)));
  const type = options.tar ? "application/x-tar" : "application/json";
  return new Promise((resolve, reject) => {
    const request = http.request(
      {
        ...endpoint.connect,
        method,
        path,
        agent: false,
        headers: {
          Host: "docker",
          ...(body ? { "Content-Type": type, "Content-Length": body.length } : {}),
        },
      },
      (response) => {
        const chunks = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("end", () => {
          const bytes = Buffer.concat(chunks);
          resolve({ status: response.statusCode ?? 0, text: bytes.toString("utf8"), bytes });
        });
        response.on("error", reject);
      },
    );
    request.setTimeout(options.timeoutMs ?? 30_000, () => {
      request.destroy(Object.assign(new Error(`no answer to ${method} ${path}`), { code: "ETIMEDOUT" }));
    });
    request.on("error", reject);
    request.end(body);
  });
}

/** The answer as an object; other codes than 2xx are thrown with the engine's message. */
export async function askEngine(endpoint, method, path, options = {}) {
  const { status, text } = await callEngine(endpoint, method, path, options);
  if (status < 200 || status > 299) {
    throw new Error(`Docker ${method} ${path} answered ${status}: ${engineMessage(text)}`);
  }
  return text.trim() === "" ? undefined : JSON.parse(text);
}

/** The `message` of an error body, or the body itself. */
export function engineMessage(/** @type {string} */ text) {
  try {
    return JSON.parse(text).message ?? text.trim();
  } catch {
    return text.trim();
  }
}
