import { parseSshPublicKey, sshFingerprint, SshKeyRefusal } from '@svc/openssh';
import { sshFields } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { readVectors } from './vectors.js';

const KEYS = readVectors('certificates.json').map(({ publicKey }) => publicKey);

export const target: FuzzTarget = {
  parser: 'parseSshPublicKey',
  seeds: KEYS,
  dictionary: [
    'ssh-ed25519',
    'ssh-rsa',
    'ecdsa-sha2-nistp256',
    'ecdsa-sha2-nistp521',
    'nistp256',
    'nistp521',
    'sk-ssh-ed25519@openssh.com',
    'sk-ecdsa-sha2-nistp256@openssh.com',
    'ssh:',
    Buffer.alloc(32),
    Buffer.from([1, ...Buffer.alloc(31)]),
    Buffer.from(`ed${'ff'.repeat(30)}7f`, 'hex'),
  ],
  structure: sshFields(() => 'sss'),
  longest: 4096,
  run(input) {
    const type = input.subarray(4, 4 + Math.min(64, input.length < 4 ? 0 : input.readUInt32BE()));
    const encoded = input.toString('base64');
    const read = (line: string) =>
      attempt(
        () => parseSshPublicKey(line),
        (error) => error instanceof SshKeyRefusal,
      );
    read(input.toString('latin1')); // the input itself as a line, which it seldom is
    const key = read(`${type.toString('latin1')} ${encoded} comment`);
    if (!key) return false;
    rule(key.blob.equals(input), 'another key is read than was sent');
    rule(key.fingerprint === sshFingerprint(input), 'the fingerprint is of another key');
    rule(
      read(`${key.type} ${encoded}`)?.fingerprint === key.fingerprint,
      'the second read differs',
    );
    return true;
  },
};
