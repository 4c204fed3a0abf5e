import { Refusal } from './refusal.js';
import { ATTRIBUTE, EXTENSION, subjectValues, type ParsedCertificate } from './certificate.js';

/**
 * The beginning of the value of the AAGUID extension: the header of an OCTET STRING of 16 bytes.
 */
const AAGUID_HEADER = Buffer.from([0x04, 16]);

/**
 * Checks the rules for the attestation certificate (leaf) of every format (WebAuthn §8.2.1, CTAP2
 * and U2F).
 *
 * @throws Refusal for another version than 3, a CA, or a key that is not on P-256
 */
export function checkLeaf(leaf: ParsedCertificate): void {
  if (leaf.version !== 3) {
    throw new Refusal('The attestation certificate is not X.509 version 3.');
  }
  // A missing extension is accepted, because the first U2F keys, YubiKey 4 and NEO have no Basic
  // Constraints.
  if (leaf.basicConstraints?.ca === true) throw new Refusal('The attestation certificate is a CA.');
  const { asymmetricKeyDetails } = leaf.x509.publicKey;
  if (asymmetricKeyDetails?.namedCurve !== 'prime256v1') {
    throw new Refusal("The attestation certificate's key is not on P-256.");
  }
}

/**
 * Checks the subject that an attestation certificate of the format `packed` must have (WebAuthn
 * §8.2.1): C, O, OU and CN, each once. The format `fido-u2f` demands none.
 * @throws Refusal for any other subject
 */
export function checkPackedSubject(leaf: ParsedCertificate): void {
  const only = (attribute: string): string => {
    const [value, ...others] = subjectValues(leaf, attribute);
    return others.length === 0 && value !== undefined ? value : '';
  };
  if (!/^[A-Z]{2}$/.test(only(ATTRIBUTE.country))) {
    throw new Refusal("The attestation certificate's subject has no ISO 3166 country.");
  }
  if (only(ATTRIBUTE.organization) === '') {
    throw new Refusal("The attestation certificate's subject has no organization.");
  }
  if (only(ATTRIBUTE.organizationalUnit) !== 'Authenticator Attestation') {
    throw new Refusal(
      'The attestation certificate\'s organizational unit is not "Authenticator Attestation".',
    );
  }
  if (only(ATTRIBUTE.commonName) === '') {
    throw new Refusal("The attestation certificate's subject has no common name.");
  }
}

/**
 * Returns the AAGUID, which names the model of the key, from an attestation certificate.
 *
 * @returns the 16 bytes of the AAGUID extension, or null when the certificate has none
 * @throws Refusal for an extension that is critical or malformed
 */
export function readAaguid(leaf: ParsedCertificate): Buffer | null {
  const extension = leaf.extensions.get(EXTENSION.aaguid);
  if (!extension) return null;
  if (extension.critical) throw new Refusal('The AAGUID extension is marked critical.');
  const header = extension.value.subarray(0, 2);
  const aaguid = extension.value.subarray(2);
  if (!header.equals(AAGUID_HEADER) || aaguid.length !== 16) {
    throw new Refusal('The AAGUID extension is malformed.');
  }
  return aaguid;
}
