import { escapeHtml } from "./http-response.ts";
import type { KubeletView } from "./view.ts";

const LINKS = [
  ["/api/v1.3/machine", "machine: processors, memory, disks, network devices"],
  ["/api/v1.3/containers/", "node total and its control groups"],
  ["/api/v1.3/subcontainers/", "every control group"],
  ["/api/v1.3/docker/", "every container of the kubelet"],
  ["/metrics", "metrics for Prometheus"],
  ["/healthz", "health of this port"],
] as const;

const READ_ONLY_LINKS = [
  ["/node", "the node: capacity, allocatable resources, pressure"],
  ["/pods", "pods with their status"],
  ["/stats/summary", "usage of node, pods and volumes"],
] as const;

/**
 * The page at the root of the cAdvisor port: links to its paths, and the running pods.
 * @param readOnlyOrigin of the read-only port, as the client would reach it; undefined when it is off
 * @param pageOrigin where the page is served over TLS; undefined when it is not
 */
export function indexPage(view: KubeletView, readOnlyOrigin: string | undefined, pageOrigin?: string): string {
  const node = escapeHtml(view.nodeName());
  const links = [
    ...(pageOrigin
      ? [link(pageOrigin, "/", "the page of this node; <code>kubelet-ts page</code> prints a link that logs in")]
      : []),
    ...LINKS.map(([path, text]) => link("", path, text)),
    ...(readOnlyOrigin ? READ_ONLY_LINKS.map(([path, text]) => link(readOnlyOrigin, path, text)) : []),
  ];
  const pods = view
    .podFacts()
    .map((pod) => ({ title: `${pod.namespace}/${pod.name}`, containers: pod.containers }))
    .toSorted((a, b) => (a.title < b.title ? -1 : 1))
    .map(({ title, containers }) => `<li>${escapeHtml(title)}<ul>${containers.map(containerItem).join("")}</ul></li>`);
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${node} - kubelet-ts</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}</style></head>
<body>
<h1>${node}</h1>
<h2>What to ask for</h2>
<ul>${links.join("")}</ul>
<h2>Pods</h2>
${pods.length > 0 ? `<ul>${pods.join("")}</ul>` : "<p>No pod runs.</p>"}
</body>
</html>
`;
}

const link = (origin: string, path: string, text: string) =>
  `<li><a href="${escapeHtml(origin + path)}">${escapeHtml(path)}</a> ${text}</li>`;

function containerItem({ name, dockerName }: { name: string; dockerName: string }): string {
  return `<li><a href="/api/v1.3/docker/${escapeHtml(encodeURIComponent(dockerName))}">${escapeHtml(name)}</a></li>`;
}
