import { isSignatureOf, readFileSignature, sshString, SshFormatError } from '@svc/openssh';
import type { Structure } from '../../engine/structure.js';
import { sshFields } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { INPUTS } from '../signed-inputs.js';

const CONTENT = Buffer.from('content');
const GENUINE = INPUTS.sshKeygen.files.map(({ signature }) => readFileSignature(signature));
const PREFIX = Buffer.from('SSHSIG');

/**
 * The five fields of an SSH signature. They follow its magic bytes and its version, which are 10
 * bytes.
 */
const FIELDS = sshFields(() => 'ssss');
const SIGNATURE: Structure = {
  read: (bytes) => [
    { head: Buffer.alloc(0), content: bytes.subarray(0, 10) },
    ...FIELDS.read(bytes.subarray(10)),
  ],
  write: (parts) => FIELDS.write(parts),
};

export const target: FuzzTarget = {
  parser: 'readFileSignature, isSignatureOf',
  seeds: INPUTS.sshKeygen.files.map(({ signature }) =>
    Buffer.from(signature.replaceAll(/-----[^-]*-----|\s/g, ''), 'base64'),
  ),
  dictionary: [
    PREFIX,
    'sha256',
    'sha512',
    'file',
    'sk-ssh-ed25519@openssh.com',
    'sk-ecdsa-sha2-nistp256@openssh.com',
    sshString('ssh-ed25519'),
    sshString('nistp256'),
    sshString('ssh:'),
  ],
  structure: SIGNATURE,
  longest: 4096,
  run(input) {
    const isFormatError = (error: unknown) => error instanceof SshFormatError;
    attempt(() => readFileSignature(input.toString('latin1')), isFormatError);
    const text = `-----BEGIN SSH SIGNATURE-----\n${input.toString('base64')}\n-----END SSH SIGNATURE-----\n`;
    const read = attempt(() => readFileSignature(text), isFormatError);
    if (!read) return false;
    const isGood = attempt(() => isSignatureOf(read, CONTENT), isFormatError) ?? false;
    const ours = GENUINE.find(({ publicBlob }) => publicBlob.equals(read.publicBlob));
    const isGenuine =
      ours?.namespace === read.namespace &&
      ours.hash === read.hash &&
      ours.reserved.equals(read.reserved);
    rule(!isGood || !ours || isGenuine, 'a signature that the key did not make');
    rule(!isGood || !isSignatureOf(read, Buffer.from('other')), 'a signature of two files');
    return true;
  },
};
