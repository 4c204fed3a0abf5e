import { hash } from 'node:crypto';
import {
  ATTESTATION_FORMATS,
  checkAuthenticatorData,
  readAttestationObject,
  readAuthenticatorData,
  Refusal,
  trustAnchorFromPem,
  verifyAttestation,
} from '@svc/webauthn-policy';
import { CBOR } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { FIDO_U2F, PACKED, type Ceremony } from './ceremonies.js';

const CEREMONIES = [PACKED, FIDO_U2F];
const ANCHORS = CEREMONIES.map(({ rootPem }) => trustAnchorFromPem(rootPem));
/**
 * The credential of each genuine attestation. The verifier must accept no mutant with another one.
 */
const GENUINE = CEREMONIES.map(({ attestationObject }) => attestedBy(attestationObject));

export const target: FuzzTarget = {
  parser: 'readAttestationObject, verifyAttestation',
  seeds: CEREMONIES.map(({ attestationObject }) => attestationObject),
  dictionary: [
    ...ATTESTATION_FORMATS,
    'fmt',
    'attStmt',
    'authData',
    'alg',
    'sig',
    'x5c',
    'none',
    'ver',
    'ecdaaKeyId',
  ],
  structure: CBOR,
  longest: 8192,
  run(input) {
    const read = attempt(() => attestedBy(input), isRefusal);
    if (read === undefined) return false;
    const isVerified = CEREMONIES.map((ceremony) => verified(input, ceremony)).some(Boolean);
    rule(!isVerified || GENUINE.includes(read), 'a credential that no key attested is accepted');
    return true;
  },
};

const isRefusal = (error: unknown) => error instanceof Refusal;

/**
 * Returns the credential of an attestation object as text.
 *
 * @throws Refusal if it is malformed
 */
function attestedBy(bytes: Buffer): string {
  const { format, authenticatorData } = readAttestationObject(bytes);
  checkAuthenticatorData(authenticatorData, 'registration');
  const { credential } = readAuthenticatorData(authenticatorData, 'registration');
  rule(credential !== undefined, 'a registration without a credential is accepted');
  const { aaguid, credentialId, key } = credential ?? {};
  const coordinates = key instanceof Map ? [key.get(-2), key.get(-3)] : [];
  const parts = [aaguid, credentialId, ...coordinates].map((part) =>
    part instanceof Uint8Array ? Buffer.from(part).toString('hex') : '',
  );
  return [format, ...parts].join();
}

function verified(bytes: Buffer, { now, clientDataJSON }: Ceremony): boolean {
  const { format, statement, authenticatorData } = readAttestationObject(bytes);
  const { rpIdHash, credential } = readAuthenticatorData(authenticatorData, 'registration');
  const [signature, x5c] = [statement.get('sig'), statement.get('x5c')];
  const known = ATTESTATION_FORMATS.find((one) => one === format);
  if (!known || !credential || !(signature instanceof Uint8Array) || !isList(x5c)) return false;
  const key = credential.key as ReadonlyMap<number, Uint8Array>;
  const [x, y] = [key.get(-2), key.get(-3)];
  const model = attempt(
    () =>
      verifyAttestation(
        { format: known, signature, x5c },
        {
          authenticatorData,
          clientDataHash: hash('sha256', clientDataJSON, 'buffer'),
          rpIdHash,
          aaguid: credential.aaguid,
          credentialId: credential.credentialId,
          publicKey: x && y && { x, y },
        },
        { anchors: ANCHORS, now },
      ),
    isRefusal,
  );
  return model !== undefined;
}

function isList(value: unknown): value is Uint8Array[] {
  return Array.isArray(value) && value.every((one) => one instanceof Uint8Array);
}
