import { ATTESTATION_FORMATS, FLAG, Refusal, type AttestationObject } from '@svc/webauthn-policy';
import { CodedRefusal } from './refusal-detail.js';
import type { RegistrationResponse } from './webauthn-json.js';

/**
 * The attestation formats of keys that are built into a computer or a telephone (WebAuthn §8.3 to
 * §8.5, §8.8).
 */
const FORMATS_OF_DEVICES: ReadonlySet<string> = new Set([
  'tpm',
  'android-key',
  'android-safetynet',
  'apple',
]);

/**
 * Returns true if a response states that it does not come from a separate security key. A client
 * can lie about this, so the result only explains a refusal and never causes one.
 */
function isOfDevice({ authenticatorAttachment, response }: RegistrationResponse): boolean {
  const { transports } = response;
  return (
    authenticatorAttachment === 'platform' ||
    transports.includes('internal') ||
    transports.includes('hybrid')
  );
}

/**
 * Accepts the attestation formats `packed` and `fido-u2f`, case-sensitive, and refuses every other
 * format with an explanation.
 *
 * @throws Refusal
 */
export function verifyFormat(
  { format, authenticatorData }: AttestationObject,
  credential: RegistrationResponse,
): void {
  if (ATTESTATION_FORMATS.some((known) => known === format)) return;
  if (FORMATS_OF_DEVICES.has(format) || isOfDevice(credential)) throw devicePasskey();
  if (format === 'none') {
    const isSynced = ((authenticatorData[32] ?? 0) & FLAG.backupEligible) !== 0;
    if (isSynced) throw devicePasskey();
    throw new CodedRefusal(
      'attestation_missing',
      'The make and model of the key are missing, because the browser did not send them. Try again, and choose “Allow” when the browser asks to see them.',
    );
  }
  throw new Refusal('Only the attestation formats packed and fido-u2f are accepted.');
}

/**
 * Runs the checks of a registration. If they refuse a response that claims to come from a passkey
 * of a device, the refusal names this as the reason.
 *
 * @throws Refusal
 */
export async function orDevicePasskey<Result>(
  credential: RegistrationResponse,
  checks: () => Promise<Result>,
): Promise<Result> {
  try {
    return await checks();
  } catch (cause) {
    if (cause instanceof Refusal && isOfDevice(credential)) throw devicePasskey({ cause });
    throw cause;
  }
}

/**
 * Returns the refusal of a passkey that a device or a password manager keeps, because this service
 * accepts hardware keys only.
 */
function devicePasskey(options?: ErrorOptions): Refusal {
  return new CodedRefusal(
    'device_passkey',
    'This is a passkey of your device or of a password manager. Use a separate security key: choose “Security key” when the browser asks, plug it in and touch it.',
    options,
  );
}
