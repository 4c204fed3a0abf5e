import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Refusal } from '@svc/webauthn-policy';

/**
 * The reasons for which an enrollment is refused with an error code of their own, because the page
 * explains them to the user.
 */
type RefusalCode = 'device_passkey' | 'attestation_missing' | 'model_not_allowed';

/** The error of a refused registration whose reason has an error code of its own. */
export class CodedRefusal extends Refusal {
  constructor(
    readonly code: RefusalCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * Patterns for the error messages of `fido2-lib`, each with the text that the client gets instead.
 */
const LIBRARY_REASONS: readonly (readonly [said: RegExp, detail: string])[] = [
  [/^clientData type should be/, 'The response belongs to the other ceremony.'],
  [/^clientData challenge/, 'The response answers another challenge.'],
  [
    /^(clientData origin|origin |Empty Origin|Invalid URL)/,
    'The response was made for another origin.',
  ],
  [/^authnrData rpIdHash/, 'The response was made for another relying party.'],
  [/^expected flag was not set: UP/, 'The key does not report a touch.'],
  [/^expected flag was not set: UV/, 'The key did not verify its user.'],
  [/^expected User Presence/, 'The key does not report a touch.'],
  [/^id and credId/, 'The credential id is not the one in the authenticator data.'],
  [/^Credential ID does not match/, 'The response is of another credential.'],
  [/^signature validation failed/, 'The signature does not verify.'],
  [/^unable to validate userHandle/, 'The response is of another user.'],
  [
    /^no support for attestation format/,
    'Only the attestation formats packed and fido-u2f are accepted.',
  ],
];

/**
 * Returns the error text that the client gets for a failed ceremony. The library also throws errors
 * about its internals, so an unknown error gets a general text. The log has the error itself as the
 * cause.
 */
export function refusalDetail(error: unknown): string {
  if (error instanceof Refusal) return error.message;
  const message = error instanceof Error ? error.message : '';
  const reason = LIBRARY_REASONS.find(([said]) => said.test(message));
  return reason?.[1] ?? 'The response is malformed.';
}

/**
 * Runs a WebAuthn ceremony. If it throws any error, the client's response is refused with the given
 * error code and the reason.
 */
export async function refusedAs<Result>(
  code: ErrorCode,
  ceremony: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await ceremony();
  } catch (cause) {
    const own =
      code === 'attestation_rejected' && cause instanceof CodedRefusal ? cause.code : undefined;
    throw new DomainError(own ?? code, refusalDetail(cause), { cause });
  }
}
