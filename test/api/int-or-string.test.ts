import { expect, test } from "bun:test";
import { resolvePort } from "../../src/api/int-or-string.ts";

const ports = [{ name: "http", containerPort: 8080 }, { containerPort: 9090 }];

test("a number is the port itself", () => expect(resolvePort(80, ports)).toBe(80));
test("a name is looked up among the container's ports", () => expect(resolvePort("http", ports)).toBe(8080));
test("an unknown name has no port", () => expect(resolvePort("grpc", ports)).toBeUndefined());
