import { attributesOf, MESSAGE_BYTES, openNetfilterSocket, toNetfilterMessage } from "./netfilter.ts";

/** Types of messages of nf_tables. Source: nfnetlink.h, nf_tables.h. */
const NFT_NEWGEN = 0xa0f;
const NFT_GETGEN = 0xa10;
const NFTA_GEN_ID = 1;

/**
 * The number of the kernel's set of rules, which each change by nftables, and by iptables on top of it, raises. One small
 * message instead of all rules.
 * @returns undefined where the kernel has no such number
 */
export async function readRuleGeneration(): Promise<number | undefined> {
  try {
    using socket = await openNetfilterSocket();
    return socket.send(toNetfilterMessage(NFT_GETGEN, 0, 0)) ? parseRuleGeneration(socket.receive()) : undefined;
  } catch {
    return undefined;
  }
}

/** Pure. @param response of the kernel: one message */
export function parseRuleGeneration(response: Buffer): number | undefined {
  if (response.length < MESSAGE_BYTES || response.readUInt16LE(4) !== NFT_NEWGEN) return undefined;
  const generation = attributesOf(response.subarray(MESSAGE_BYTES, response.readUInt32LE(0))).get(NFTA_GEN_ID);
  return generation?.length === 4 ? generation.readUInt32BE() : undefined;
}
