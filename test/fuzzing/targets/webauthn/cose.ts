import {
  checkAuthenticatorData,
  FLAG,
  readAttestationObject,
  readAuthenticatorData,
  Refusal,
} from '@svc/webauthn-policy';
import { CBOR } from '../../engine/structures.js';
import type { Structure } from '../../engine/structure.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { readStrictCbor, type CborValue } from '../../readers/strict-cbor.js';
import { FIDO_U2F, PACKED } from './ceremonies.js';

const FIXED = 37;
const HEADER = 18;

/**
 * The structure of authenticator data. The first part reaches up to the end of the credential id.
 * Each CBOR item after it is a further part.
 */
const AUTHENTICATOR_DATA: Structure = {
  read(bytes) {
    const hasCredential =
      ((bytes[32] ?? 0) & FLAG.credential) !== 0 && bytes.length > FIXED + HEADER;
    const id = hasCredential ? bytes.readUInt16BE(FIXED + 16) : 0;
    const end = hasCredential ? FIXED + HEADER + id : FIXED;
    const fixed = { head: Buffer.alloc(0), content: bytes.subarray(0, end) };
    return [fixed, ...CBOR.read(bytes.subarray(end))];
  },
  write: ([fixed, ...items]) =>
    Buffer.concat([
      fixed && Buffer.isBuffer(fixed.content) ? fixed.content : Buffer.alloc(0),
      CBOR.write(items),
    ]),
};

export const target: FuzzTarget = {
  parser: 'checkAuthenticatorData, readAuthenticatorData',
  seeds: [
    readAttestationObject(PACKED.attestationObject).authenticatorData,
    readAttestationObject(FIDO_U2F.attestationObject).authenticatorData,
    PACKED.assertedData,
    FIDO_U2F.assertedData,
  ],
  dictionary: [
    Buffer.from('a5010203262001215820', 'hex'),
    Buffer.from('225820', 'hex'),
    Buffer.from('a16b6372656450726f7465637403', 'hex'),
    'credProtect',
    'hmac-secret',
  ],
  structure: AUTHENTICATOR_DATA,
  longest: 2048,
  run(input) {
    const ceremonies = ['registration', 'assertion'] as const;
    return ceremonies.filter((ceremony) => accepts(input, ceremony)).length > 0;
  },
};

function accepts(input: Buffer, ceremony: 'registration' | 'assertion'): boolean {
  const isRefusal = (error: unknown) => error instanceof Refusal;
  const read = attempt(() => readAuthenticatorData(input, ceremony), isRefusal);
  const isChecked =
    attempt(() => (checkAuthenticatorData(input, ceremony), true), isRefusal) === true;
  rule(!isChecked || read !== undefined, 'data are checked that cannot be read');
  if (!read) return false;
  const { flags, credential, extensions } = read;
  rule((flags & (FLAG.backupEligible | FLAG.backedUp)) === 0, 'a key that can be copied');
  rule((credential !== undefined) === (ceremony === 'registration'), 'another ceremony');
  rule(extensions.size === 0 || (flags & FLAG.extensions) !== 0, 'unannounced extensions');
  if (isChecked && credential)
    rule(isEs256(input, credential.credentialId), 'a key of another kind');
  return isChecked;
}

/**
 * Returns true if the strict reader finds an ES256 key after the credential id. The key must have
 * each of its five members once.
 */
function isEs256(input: Buffer, { length }: Buffer): boolean {
  const [key] = readStrictCbor(input.subarray(FIXED + HEADER + length));
  if (key?.kind !== 'map' || key.pairs.length !== 5) return false;
  const valueOf = (label: bigint): CborValue | undefined =>
    key.pairs.find(([name]) => name.kind === 'integer' && name.value === label)?.[1];
  const numbers = [1n, 3n, -1n].map((label) => valueOf(label));
  const coordinates = [-2n, -3n].map((label) => valueOf(label));
  return (
    numbers.every((one, index) => one?.kind === 'integer' && one.value === [2n, -7n, 1n][index]) &&
    coordinates.every((one) => one?.kind === 'bytes' && one.value.length === 32)
  );
}
