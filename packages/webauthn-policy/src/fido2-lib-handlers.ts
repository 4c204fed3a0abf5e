import { hash } from 'node:crypto';
import type { FormatRegistry, RegistrationCeremony } from './format-registry.js';
import {
  ATTESTATION_FORMATS,
  ES256,
  verifyAttestation,
  type AttestationFormat,
} from './attestation-policy.js';
import { Refusal } from './refusal.js';

/**
 * Makes our own `packed` and `fido-u2f` the only attestation formats that `fido2-lib` knows. Its
 * own formats prove nothing: they accept self-attestation, and ignore a certificate whose signature
 * does not verify. The registry belongs to the process, so that a second call changes nothing.
 *
 * @param registry the class `Fido2Lib`
 */
export function registerAttestationFormats(registry: FormatRegistry): void {
  registry.deleteAllAttestationFormats();
  for (const format of ATTESTATION_FORMATS) {
    registry.addAttestationFormat(
      format,
      (statement) => readStatement(format, statement),
      function () {
        return validateStatement(format, this);
      },
    );
  }
}

/**
 * Reads the members of an attestation statement. It must have exactly the members of its format
 * (WebAuthn §8.2, §8.6).
 */
function readStatement(
  format: AttestationFormat,
  statement: Record<string, unknown>,
): Map<string, unknown> {
  const { alg, sig, x5c, ...others } = statement;
  if (x5c === undefined || x5c === null) {
    throw new Refusal('Self-attestation is not accepted: x5c is missing.');
  }
  if (format === 'packed' && alg !== ES256) {
    throw new Refusal(`Only ES256 (${ES256}) attestation signatures are accepted.`);
  }
  const isWhole =
    sig instanceof Uint8Array &&
    Array.isArray(x5c) &&
    x5c.every((certificate) => certificate instanceof Uint8Array) &&
    (format === 'packed' || alg === undefined) &&
    Object.keys(others).length === 0;
  if (!isWhole) throw new Refusal(`The ${format} attestation statement is malformed.`);
  return new Map(Object.entries(statement));
}

/**
 * Applies the policy of this package to a statement. The function then lists the verified members,
 * because the library `fido2-lib` refuses a registration with a member that is not listed.
 */
async function validateStatement(
  format: AttestationFormat,
  { authnrData, clientData, audit, request }: RegistrationCeremony,
): Promise<true> {
  const { x, y } = authnrData.get('credentialPublicKeyJwk');
  request.decision.aaguid = verifyAttestation(
    { format, signature: authnrData.get('sig'), x5c: authnrData.get('x5c') },
    {
      authenticatorData: new Uint8Array(authnrData.get('rawAuthnrData')),
      clientDataHash: hash('sha256', new Uint8Array(clientData.get('rawClientDataJson')), 'buffer'),
      rpIdHash: new Uint8Array(authnrData.get('rpIdHash')),
      aaguid: new Uint8Array(authnrData.get('aaguid')),
      credentialId: new Uint8Array(authnrData.get('credId')),
      publicKey: { x: Buffer.from(x, 'base64url'), y: Buffer.from(y, 'base64url') },
    },
    request.trust,
  );
  for (const member of ['fmt', 'alg', 'sig', 'x5c']) {
    if (authnrData.has(member)) audit.journal.add(member);
  }
  return true;
}
