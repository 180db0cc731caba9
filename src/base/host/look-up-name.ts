import { lookup } from "node:dns/promises";

const MAX_ADDRESSES = 16;

/** Addresses of a name by this machine's hosts file and name servers. @throws when there are none */
export async function lookUpName(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true });
  return found.slice(0, MAX_ADDRESSES).map(({ address }) => address);
}
