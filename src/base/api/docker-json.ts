import * as v from "valibot";

/**
 * Docker writes `null` for empty lists and maps and leaves fields out, by version: all of these take absent and null.
 */
export const text = v.nullish(v.string(), "");
export const flag = v.nullish(v.boolean(), false);
export const whole = v.nullish(v.number(), 0);

export const listOf = <const S extends v.GenericSchema>(item: S) => v.nullish(v.array(item), () => []);

export const mapOf = <const S extends v.GenericSchema>(value: S) => v.nullish(v.record(v.string(), value), () => ({}));

/** Labels, sysctls, driver options. */
export const textMap = mapOf(v.string());

/** `{"8080/tcp": {}}`, `{"/data": {}}`: a set written as a map. */
export const nameSet = mapOf(v.unknown());
