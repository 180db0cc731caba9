/** Outcome of one named health check. */
export interface HealthCheck {
  /** `ping`, `log`, `syncloop`; `/healthz/<name>` answers for it alone. */
  name: string;
  ok: boolean;
  /** The reason of a failure; "" when ok. Never a secret. */
  message: string;
}
