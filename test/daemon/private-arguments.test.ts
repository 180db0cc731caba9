import { expect, test } from "bun:test";
import { maskArguments } from "../../src/daemon/private-arguments.ts";

test.each([
  [["http://user:secret@host/pods"], ["http://***@host/pods"]],
  [["--manifest-url=http://user:secret@host/pods?token=x"], ["--manifest-url=http://***@host/pods?***"]],
  [
    ["--manifest-url", "http://a:b@host,http://c:d@host"],
    ["--manifest-url", "http://***@host,http://***@host"],
  ],
  [["--manifest-url-header=Authorization:Bearer x"], ["--manifest-url-header=***"]],
  [
    ["--manifest-url-header", "Authorization:Bearer x", "--v=2"],
    ["--manifest-url-header", "***", "--v=2"],
  ],
  [
    ["--manifest_url_header", "X:y"],
    ["--manifest_url_header", "***"],
  ],
  [["--docker-endpoint=unix:///run/docker.sock"], ["--docker-endpoint=unix:///run/docker.sock"]],
  [
    ["--hostname-override=a@b", "/etc/kubernetes/x?y"],
    ["--hostname-override=a@b", "/etc/kubernetes/x?y"],
  ],
])("%p is shown as %p", (argv, shown) => {
  expect(maskArguments(argv)).toEqual(shown);
});
