import type { PodSpec, ResourceRequirements } from "../../base/api/pod.ts";
import { sumContainerRequests } from "../../base/api/pod-requests.ts";
import {
  compareQuantities,
  isNegativeQuantity,
  isWholeQuantity,
  parseQuantity,
  type Quantity,
  ZERO_QUANTITY,
} from "../../base/api/quantity.ts";
import type { Field } from "../field.ts";
import { checkDnsLabel, checkQualifiedName } from "./names.ts";

const CONTAINER_RESOURCES = ["cpu", "memory", "ephemeral-storage"];
/** Objects counted by quotas. Not valid for containers; fractions are an additional error. */
const COUNTED_RESOURCES = [
  ..."pods resourcequotas services replicationcontrollers secrets configmaps persistentvolumeclaims".split(" "),
  ..."services.nodeports services.loadbalancers".split(" "),
];
/** Names without a domain that upstream knows; only some are valid for containers. */
const STANDARD_RESOURCES = [
  ...CONTAINER_RESOURCES,
  ...CONTAINER_RESOURCES.flatMap((name) => [`requests.${name}`, `limits.${name}`]),
  "storage",
  "requests.storage",
  ...COUNTED_RESOURCES,
];

const isHugePages = (name: string) => name.startsWith("hugepages-");
const isNative = (name: string) => !name.includes("/") || name.includes("kubernetes.io/");
const isExtended = (name: string) =>
  !isNative(name) && !name.startsWith("requests.") && checkQualifiedName(`requests.${name}`).length === 0;
const mayOvercommit = (name: string) => isNative(name) && !isHugePages(name);

const quantityOf = (text: string | undefined): Quantity => parseQuantity(text ?? "0") ?? ZERO_QUANTITY;

/** Source: core validation `ValidateContainerResourceRequirements`. */
export function validateResources(resources: Field<ResourceRequirements>, claimNames: ReadonlySet<string>): void {
  validateResourceLists(resources, validateContainerResourceName);
  validateClaims(resources.field("claims"), claimNames);
}

function validateResourceLists(
  resources: Field<Pick<ResourceRequirements, "limits" | "requests">>,
  validateName: (name: Field<string>) => void,
): void {
  const { limits = {}, requests = {} } = resources.value;
  for (const [name, amount] of resources.field("limits").entries()) validateAmount(name, amount, validateName);
  for (const [name, amount] of resources.field("requests").entries()) {
    // A request filled in from the limit has no position of its own.
    validateAmount(name, amount, validateName);
    const limit = limits[name];
    if (limit === undefined) {
      const message = `must have ${name} too: it cannot be overcommitted`;
      if (!mayOvercommit(name)) amount.as(resources.path.child("limits")).required(message);
      continue;
    }
    const order = compareQuantities(quantityOf(amount.value), quantityOf(limit));
    const reported = amount.as(resources.path.child("requests"));
    if (order !== 0 && !mayOvercommit(name)) reported.invalid(`${name} must be equal to its limit of ${limit}`);
    else if (order > 0) reported.invalid(`${name} must not be more than its limit of ${limit}`);
  }
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  if (names.some(isHugePages) && !names.includes("cpu") && !names.includes("memory")) {
    resources.forbidden("huge pages require cpu or memory");
  }
}

function validateAmount(name: string, amount: Field<string>, validateName: (name: Field<string>) => void): void {
  validateName(amount.key(name));
  const quantity = quantityOf(amount.value);
  if (isNegativeQuantity(quantity)) amount.invalid("must be 0 or more");
  if ((COUNTED_RESOURCES.includes(name) || isExtended(name)) && !isWholeQuantity(quantity)) {
    amount.invalid("must be a whole number");
  }
  if (isHugePages(name) && !isMultipleOfPage(name, quantity)) {
    amount.invalid(`must be a multiple of the page size in ${name}`);
  }
}

function isMultipleOfPage(name: string, quantity: Quantity): boolean {
  const page = parseQuantity(name.slice("hugepages-".length));
  if (!page || compareQuantities(page, ZERO_QUANTITY) <= 0 || !isWholeQuantity(page)) return false;
  const scale = Math.min(page.scale, quantity.scale, 0);
  const unit = (q: Quantity) => q.unscaled * 10n ** BigInt(q.scale - scale);
  return unit(quantity) % unit(page) === 0n;
}

/** A CDI device as podman takes it: `nvidia.com/gpu=all`. */
const CDI_DEVICE = /^[a-z][\w.-]*\/[a-z][\w-]*=[a-z0-9][\w.:-]*$/i;

function validateContainerResourceName(field: Field<string>): void {
  if (CDI_DEVICE.test(field.value)) return;
  const known = "must be cpu, memory, ephemeral-storage, hugepages-<size> or have a domain, e.g. example.com/gpu";
  const name = field.value;
  const messages = checkQualifiedName(name);
  const isPlain = !name.includes("/");
  field.format(() => messages);
  if (isPlain && messages.length === 0 && !STANDARD_RESOURCES.includes(name) && !isHugePages(name)) {
    field.invalid("must be a standard resource or have a domain");
  }
  if (isPlain ? !CONTAINER_RESOURCES.includes(name) && !isHugePages(name) : !isNative(name) && !isExtended(name)) {
    field.invalid(known);
  }
}

function validateClaims(claims: Field<ResourceRequirements["claims"]>, claimNames: ReadonlySet<string>): void {
  const seen = new Set<string>();
  /** Claims of which individual requests are used. */
  const inParts = new Set<string>();
  for (const claim of claims.items()) {
    const { name, request } = claim.value;
    if (name === "") {
      claim.required();
      continue;
    }
    const key = request === undefined ? name : `${name}/${request}`;
    const overlaps = request === undefined && inParts.has(name);
    if (seen.has(name) || seen.has(key) || overlaps) claim.with(key).duplicate();
    if (request !== undefined) inParts.add(name);
    claim.field("request").format(checkDnsLabel);
    seen.add(key);
    if (!claimNames.has(name)) claim.with(name).notFound("must be a name in spec.resourceClaims");
  }
}

/** Validates resources of the whole pod. Source: core validation `validatePodResources`. */
export function validatePodResources(spec: Field<PodSpec>): void {
  const { resources } = spec.value;
  if (!resources) return;
  const field = spec.field("resources").with(resources);
  if (resources.claims) field.field("claims").forbidden("claims belong to containers");
  validateResourceLists(field, validatePodResourceName);
  const requests = field.field("requests").with<Record<string, string>>(resources.requests ?? {});
  for (const [name, sum] of Object.entries(sumContainerRequests(spec.value))) {
    const own = requests.value[name];
    if (!isPodResource(name) || compareQuantities(quantityOf(sum), quantityOf(own)) <= 0) continue;
    const message = `must be at least what the containers request together, ${sum}`;
    requests
      .entry(name)
      .with(own ?? "0")
      .invalid(message);
  }
  for (const [index, container] of spec.field("containers").items().entries()) {
    for (const [name, limit] of container.field("resources").field("limits").entries()) {
      const podLimit = resources.limits?.[name];
      if (podLimit === undefined || compareQuantities(quantityOf(limit.value), quantityOf(podLimit)) <= 0) continue;
      const upstream = field.path.child("containers").index(index).key(name).child("limits");
      limit.as(upstream).invalid(`must not be more than the pod's limit of ${podLimit}`);
    }
  }
}

const isPodResource = (name: string) => name === "cpu" || name === "memory" || isHugePages(name);

function validatePodResourceName(name: Field<string>): void {
  const messages = checkQualifiedName(name.value);
  name.format(() => messages);
  if (messages.length === 0 && !isPodResource(name.value)) name.notSupported(["cpu", "memory", "hugepages-<size>"]);
}

/** Validates the overhead of the pod. */
export function validateOverhead(spec: Field<PodSpec>): void {
  const overhead = spec.field("overhead");
  if (overhead.value) validateResourceLists(overhead.with({ limits: overhead.value }), validateContainerResourceName);
}
