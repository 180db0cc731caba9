/** Of a body or a command's output no more is kept. Source: upstream's `maxRespBodyLength`, `maxReadLength`. */
export const PROBE_OUTPUT_LIMIT_BYTES = 10 * 1024;
