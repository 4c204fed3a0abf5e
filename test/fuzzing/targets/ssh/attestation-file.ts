import { parseSshPublicKey } from '@svc/openssh';
import { Refusal, trustAnchorFromPem } from '@svc/webauthn-policy';
import { readAttestationFile } from '#domain/ssh/hardware-keys/attestation-file.js';
import { verifyKeyAttestation } from '#domain/ssh/hardware-keys/key-attestation.js';
import { sshFields } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { INPUTS, NOW } from '../signed-inputs.js';

const { root, keys } = INPUTS.sshAttestation;
const TRUST = { anchors: [trustAnchorFromPem(root)], now: NOW };
const KEYS = keys.map(({ publicKey }) => parseSshPublicKey(publicKey));
const CHALLENGE = Buffer.alloc(32, 1);
/**
 * The authenticator data of each genuine key, which its attestation signs. No other data may be
 * accepted.
 */
const GENUINE = keys.map(
  ({ file }) => readAttestationFile(Buffer.from(file, 'base64')).authenticatorData,
);
const OTHER = Buffer.alloc(32, 2);

export const target: FuzzTarget = {
  parser: 'readAttestationFile, verifyKeyAttestation',
  seeds: keys.map(({ file }) => Buffer.from(file, 'base64')),
  dictionary: ['ssh-sk-attest-v01', 'ssh-sk-attest-v00', 'ssh:', 'credProtect'],
  structure: sshFields(() => 'sss4s'),
  longest: 8192,
  run(file) {
    const isRefusal = (error: unknown) => error instanceof Refusal;
    const read = attempt(() => readAttestationFile(file), isRefusal);
    KEYS.forEach((key, index) => {
      const isProven = (challenge: Buffer) =>
        attempt(() => verifyKeyAttestation({ key, file, challenge }, TRUST), isRefusal) !==
        undefined;
      const isGenuine = read?.authenticatorData.equals(GENUINE[index] ?? OTHER) ?? false;
      rule(!isProven(CHALLENGE) || isGenuine, 'an attestation that the security key did not make');
      rule(!isProven(OTHER), 'an attestation of another challenge');
    });
    return read !== undefined;
  },
};
