const zeros = (names: string): Readonly<Record<string, 0>> =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, 0 as const]));

const TCP = zeros("Established SynSent SynRecv FinWait1 FinWait2 TimeWait Close CloseWait LastAck Listen Closing");
const UDP = zeros("Listen Dropped RxQueued TxQueued");

/**
 * The connection counters in cAdvisor's network statistics. The kubelet switches them off, so they are always 0, but
 * clients expect them.
 */
export const NO_TCP_STATS = {
  tcp: TCP,
  tcp6: TCP,
  udp: UDP,
  udp6: UDP,
  tcp_advanced: zeros(
    `RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs
    RetransSegs InErrs OutRsts InCsumErrors EmbryonicRsts SyncookiesSent SyncookiesRecv SyncookiesFailed PruneCalled
    RcvPruned OfoPruned OutOfWindowIcmps LockDroppedIcmps TW TWRecycled TWKilled TCPTimeWaitOverflow TCPTimeouts
    TCPSpuriousRTOs TCPLossProbes TCPLossProbeRecovery TCPRenoRecoveryFail TCPSackRecoveryFail TCPRenoFailures
    TCPSackFailures TCPLossFailures DelayedACKs DelayedACKLocked DelayedACKLost ListenOverflows ListenDrops
    TCPHPHits TCPPureAcks TCPHPAcks TCPRenoRecovery TCPSackRecovery TCPSACKReneging TCPFACKReorder TCPSACKReorder
    TCPRenoReorder TCPTSReorder TCPFullUndo TCPPartialUndo TCPDSACKUndo TCPLossUndo TCPFastRetrans
    TCPSlowStartRetrans TCPLostRetransmit TCPRetransFail TCPRcvCollapsed TCPDSACKOldSent TCPDSACKOfoSent
    TCPDSACKRecv TCPDSACKOfoRecv TCPAbortOnData TCPAbortOnClose TCPAbortOnMemory TCPAbortOnTimeout TCPAbortOnLinger
    TCPAbortFailed TCPMemoryPressures TCPMemoryPressuresChrono TCPSACKDiscard TCPDSACKIgnoredOld
    TCPDSACKIgnoredNoUndo TCPMD5NotFound TCPMD5Unexpected TCPMD5Failure TCPSackShifted TCPSackMerged
    TCPSackShiftFallback TCPBacklogDrop PFMemallocDrop TCPMinTTLDrop TCPDeferAcceptDrop IPReversePathFilter
    TCPReqQFullDoCookies TCPReqQFullDrop TCPFastOpenActive TCPFastOpenActiveFail TCPFastOpenPassive
    TCPFastOpenPassiveFail TCPFastOpenListenOverflow TCPFastOpenCookieReqd TCPSynRetrans TCPOrigDataSent PAWSActive
    PAWSEstab`,
  ),
};
