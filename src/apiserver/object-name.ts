import { checkDnsSubdomain } from "../manifest/validate/names.ts";
import type { StatusCause } from "./api-error.ts";

/** No vowels, and no digits that look like letters: no names that mean something. Source: apimachinery's `rand.String`. */
const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
const RANDOM_LENGTH = 5;
const MAX_GENERATED_LENGTH = 63;

/** @param random in [0, 1) */
export function generateName(prefix: string, random: () => number): string {
  const letters = Array.from({ length: RANDOM_LENGTH }, () => ALPHABET[Math.floor(random() * ALPHABET.length)]);
  return prefix.slice(0, MAX_GENERATED_LENGTH - RANDOM_LENGTH) + letters.join("");
}

/** Causes for refusing a name of any kind; kinds with stricter rules check those too. */
export function checkObjectName(name: string): StatusCause[] {
  return checkDnsSubdomain(name).map((message) => ({
    reason: "FieldValueInvalid",
    field: "metadata.name",
    message: `Invalid value: ${JSON.stringify(name)}: ${message}`,
  }));
}
