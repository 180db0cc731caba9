export function findFailures(output: string): { files: string[]; failures: string[] };
