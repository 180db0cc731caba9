import type { PodSpec, ResourceRequirements } from "../../base/api/pod.ts";
import {
  compareQuantities,
  isNegativeQuantity,
  isWholeQuantity,
  parseQuantity,
  type Quantity,
  ZERO_QUANTITY,
} from "../../base/api/quantity.ts";
import type { ResourceList } from "../../base/api/scalar.ts";
import { sumContainerRequests } from "../defaults.ts";
import type { FieldPath } from "../field-path.ts";
import type { FieldErrors, Position } from "./field-errors.ts";
import { checkDnsLabel, checkQualifiedName } from "./names.ts";

const CONTAINER_RESOURCES = ["cpu", "memory", "ephemeral-storage"];
/** Objects counted by quotas. Not valid for containers; fractions are an additional error. */
const COUNTED_RESOURCES = [
  "pods",
  "resourcequotas",
  "services",
  "replicationcontrollers",
  "secrets",
  "configmaps",
  "persistentvolumeclaims",
  "services.nodeports",
  "services.loadbalancers",
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
export function validateResources(
  resources: ResourceRequirements,
  claimNames: ReadonlySet<string>,
  path: FieldPath,
  errors: FieldErrors,
): void {
  validateResourceLists(resources, validateContainerResourceName, path, errors);
  validateClaims(resources.claims ?? [], claimNames, path.child("claims"), errors);
}

type NameCheck = (name: string, path: FieldPath, errors: FieldErrors, position?: Position) => void;

function validateResourceLists(
  resources: { limits?: ResourceList | undefined; requests?: ResourceList | undefined },
  checkName: NameCheck,
  path: FieldPath,
  errors: FieldErrors,
): void {
  const limits = resources.limits ?? {};
  const requests = resources.requests ?? {};
  const limitsPath = path.child("limits");
  const requestsPath = path.child("requests");
  for (const [name, amount] of Object.entries(limits)) {
    validateAmount(name, amount, checkName, limitsPath.key(name), errors);
  }
  for (const [name, amount] of Object.entries(requests)) {
    // A request filled in from the limit has no position of its own.
    const itemPath = requestsPath.key(name);
    validateAmount(name, amount, checkName, itemPath, errors);
    const limit = limits[name];
    if (limit === undefined) {
      if (!mayOvercommit(name))
        errors.required(limitsPath, `must have ${name} too: it cannot be overcommitted`, { at: itemPath });
      continue;
    }
    const order = compareQuantities(quantityOf(amount), quantityOf(limit));
    if (order !== 0 && !mayOvercommit(name)) {
      errors.invalid(requestsPath, amount, `${name} must be equal to its limit of ${limit}`, { at: itemPath });
    } else if (order > 0) {
      errors.invalid(requestsPath, amount, `${name} must not be more than its limit of ${limit}`, { at: itemPath });
    }
  }
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  if (names.some(isHugePages) && !names.includes("cpu") && !names.includes("memory")) {
    errors.forbidden(path, "huge pages require cpu or memory");
  }
}

function validateAmount(
  name: string,
  amount: string,
  checkName: NameCheck,
  path: FieldPath,
  errors: FieldErrors,
): void {
  checkName(name, path, errors, { at: path, atKey: true });
  const quantity = quantityOf(amount);
  if (isNegativeQuantity(quantity)) errors.invalid(path, amount, "must be 0 or more");
  if ((COUNTED_RESOURCES.includes(name) || isExtended(name)) && !isWholeQuantity(quantity)) {
    errors.invalid(path, amount, "must be a whole number");
  }
  if (isHugePages(name) && !isMultipleOfPage(name, quantity)) {
    errors.invalid(path, amount, `must be a multiple of the page size in ${name}`);
  }
}

function isMultipleOfPage(name: string, quantity: Quantity): boolean {
  const page = parseQuantity(name.slice("hugepages-".length));
  if (!page || compareQuantities(page, ZERO_QUANTITY) <= 0 || !isWholeQuantity(page)) return false;
  const scale = Math.min(page.scale, quantity.scale, 0);
  const unit = (q: Quantity) => q.unscaled * 10n ** BigInt(q.scale - scale);
  return unit(quantity) % unit(page) === 0n;
}

function validateContainerResourceName(name: string, path: FieldPath, errors: FieldErrors, position?: Position): void {
  const known = "must be cpu, memory, ephemeral-storage, hugepages-<size> or have a domain, e.g. example.com/gpu";
  const messages = checkQualifiedName(name);
  const isPlain = !name.includes("/");
  errors.invalidAll(path, name, messages, position);
  if (isPlain && messages.length === 0 && !STANDARD_RESOURCES.includes(name) && !isHugePages(name)) {
    errors.invalid(path, name, "must be a standard resource or have a domain", position);
  }
  if (isPlain && !CONTAINER_RESOURCES.includes(name) && !isHugePages(name)) errors.invalid(path, name, known, position);
  else if (!isPlain && !isNative(name) && !isExtended(name)) errors.invalid(path, name, known, position);
}

function validateClaims(
  claims: NonNullable<ResourceRequirements["claims"]>,
  claimNames: ReadonlySet<string>,
  path: FieldPath,
  errors: FieldErrors,
): void {
  const seen = new Set<string>();
  /** Claims of which individual requests are used. */
  const inParts = new Set<string>();
  for (const [index, { name, request }] of claims.entries()) {
    const itemPath = path.index(index);
    if (name === "") {
      errors.required(itemPath);
      continue;
    }
    const key = request === undefined ? name : `${name}/${request}`;
    const overlaps = request === undefined && inParts.has(name);
    if (seen.has(name) || seen.has(key) || overlaps) errors.duplicate(itemPath, key);
    if (request !== undefined) inParts.add(name);
    if (request !== undefined) errors.invalidAll(itemPath.child("request"), request, checkDnsLabel(request));
    seen.add(key);
    if (!claimNames.has(name)) errors.notFound(itemPath, name, "must be a name in spec.resourceClaims");
  }
}

/** Validates resources of the whole pod. Source: core validation `validatePodResources`. */
export function validatePodResources(spec: PodSpec, specPath: FieldPath, errors: FieldErrors): void {
  const { resources } = spec;
  if (!resources) return;
  const path = specPath.child("resources");
  if (resources.claims) errors.forbidden(path.child("claims"), "claims belong to containers");
  validateResourceLists(resources, validatePodResourceName, path, errors);
  for (const [name, sum] of Object.entries(sumContainerRequests(spec))) {
    const own = resources.requests?.[name];
    if (!isPodResource(name) || compareQuantities(quantityOf(sum), quantityOf(own)) <= 0) continue;
    const message = `must be at least what the containers request together, ${sum}`;
    errors.invalid(path.child("requests").key(name), own ?? "0", message);
  }
  for (const [index, container] of spec.containers.entries()) {
    for (const [name, limit] of Object.entries(container.resources.limits ?? {})) {
      const podLimit = resources.limits?.[name];
      if (podLimit === undefined || compareQuantities(quantityOf(limit), quantityOf(podLimit)) <= 0) continue;
      const upstream = path.child("containers").index(index).key(name).child("limits");
      const at = specPath.child("containers").index(index).child("resources").child("limits").key(name);
      errors.invalid(upstream, limit, `must not be more than the pod's limit of ${podLimit}`, { at });
    }
  }
}

const isPodResource = (name: string) => name === "cpu" || name === "memory" || isHugePages(name);

function validatePodResourceName(name: string, path: FieldPath, errors: FieldErrors, position?: Position): void {
  const messages = checkQualifiedName(name);
  errors.invalidAll(path, name, messages, position);
  if (messages.length === 0 && !isPodResource(name))
    errors.notSupported(path, name, ["cpu", "memory", "hugepages-<size>"], position);
}

/** Validates the overhead of the pod. */
export function validateOverhead(overhead: ResourceList, path: FieldPath, errors: FieldErrors): void {
  validateResourceLists({ limits: overhead }, validateContainerResourceName, path, errors);
}
