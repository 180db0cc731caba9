export function removeCniRules(isStale: (networkName: string) => boolean): number;
export function planRuleRemoval(saved: string, isStale: (networkName: string) => boolean): string;
