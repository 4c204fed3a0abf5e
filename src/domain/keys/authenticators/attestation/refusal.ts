/** The causes of a refused enrollment that have an error code of their own. */
export type RefusalCode = 'device_passkey' | 'attestation_missing' | 'model_not_allowed';

/**
 * The error of a refused ceremony. Its message is for the client.
 *
 * The attestation policy and the parsers throw it for both ceremonies. {@link WebAuthnCeremonies}
 * turns it into a `DomainError`: with the code of the refusal, or else with the code of the
 * ceremony.
 */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  /** The error code of a refused registration with a cause of its own. */
  readonly code: RefusalCode | undefined;

  constructor(message: string, { code, ...options }: ErrorOptions & { code?: RefusalCode } = {}) {
    super(message, options);
    this.code = code;
  }
}
