import * as v from "valibot";

/**
 * Building blocks for the responses of Docker. Docker (Go) writes `null` for empty lists and maps, and leaves out what newer
 * or older versions do not know: so all of these take absent and null. Unknown fields are dropped.
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
