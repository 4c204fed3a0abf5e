/**
 * Why a ceremony is refused, written for the client. The policy and the parsers throw it without knowing which
 * ceremony they serve; {@link WebAuthnCeremonies} gives it the error code.
 */
export class Refusal extends Error {
  override readonly name = 'Refusal';
}
