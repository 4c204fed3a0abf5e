/** The error types of RFC 7644 §3.12 that a SCIM server may use. */
export type ScimErrorType =
  | 'invalidFilter'
  | 'invalidPath'
  | 'invalidSyntax'
  | 'invalidValue'
  | 'mutability'
  | 'noTarget'
  | 'tooMany'
  | 'uniqueness';

/**
 * The error of a request that breaks a rule of SCIM. `detail` is for the client: it states the
 * problem and how to correct it.
 */
export class ScimError extends Error {
  override readonly name: string = 'ScimError';

  constructor(
    readonly scimType: ScimErrorType,
    readonly detail: string,
    options?: ErrorOptions,
  ) {
    super(`${scimType}: ${detail}`, options);
  }
}
