/** The causes of a refused enrollment that have an error code of their own. */
export type RefusalCode = 'device_passkey' | 'attestation_missing' | 'model_not_allowed';

/**
 * Why a ceremony is refused, written for the client. The policy and the parsers throw it without knowing which
 * ceremony they serve; {@link WebAuthnCeremonies} gives it the error code, unless a registration's cause has its own.
 */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: RefusalCode | undefined;

  constructor(message: string, { code, ...options }: ErrorOptions & { code?: RefusalCode } = {}) {
    super(message, options);
    this.code = code;
  }
}
