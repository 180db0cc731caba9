/** A token of a service account, as a projected volume requests it. */
export interface TokenSpec {
  /** "" = the API server's own. */
  audience: string;
  expirationSeconds: number;
}
