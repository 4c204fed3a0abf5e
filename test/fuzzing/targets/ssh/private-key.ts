import {
  publicKeyBlob,
  readAuthorityKeys,
  readPrivateKey,
  SshFormatError,
  writePrivateKey,
} from '@svc/openssh';
import type { Structure } from '../../engine/structure.js';
import { wordsBy } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { INPUTS } from '../signed-inputs.js';

const { files, pkcs8 } = INPUTS.sshKeygen;
const WORDS = wordsBy(/-----[^-\n]*-----|[A-Za-z0-9+/=]+|[^]/g);
const ARMOR = /^-----BEGIN OPENSSH PRIVATE KEY-----\n([^-]*)-----END OPENSSH PRIVATE KEY-----\n?$/;

/**
 * The structure of a key file. For an OpenSSH key it has the decoded bytes, because changes of the
 * base64 text would seldom change single fields. Any other text is divided into words.
 */
const KEY_FILE: Structure = {
  read(bytes) {
    const armored = ARMOR.exec(bytes.toString('latin1'))?.[1];
    if (armored === undefined) return WORDS.read(bytes);
    return [{ head: Buffer.from('ssh'), content: Buffer.from(armored, 'base64') }];
  },
  write(parts) {
    const [only] = parts;
    if (only?.head.toString() !== 'ssh' || !Buffer.isBuffer(only.content))
      return WORDS.write(parts);
    const encoded = only.content.toString('base64');
    return Buffer.from(
      `-----BEGIN OPENSSH PRIVATE KEY-----\n${encoded}\n-----END OPENSSH PRIVATE KEY-----\n`,
    );
  },
};

export const target: FuzzTarget = {
  parser: 'readPrivateKey, readAuthorityKeys',
  seeds: [
    ...files.flatMap(({ privateKey, publicKey }) => [privateKey, `# old\n${publicKey}`]),
    pkcs8,
    `${pkcs8}${files[0]?.publicKey ?? ''}`,
  ].map((text) => Buffer.from(text)),
  dictionary: [
    '-----BEGIN OPENSSH PRIVATE KEY-----',
    '-----BEGIN PRIVATE KEY-----',
    '-----BEGIN PUBLIC KEY-----',
    '-----END PUBLIC KEY-----',
    'openssh-key-v1\0',
    Buffer.from('0000000b7373682d65643235353139', 'hex'),
    Buffer.from('000000046e6f6e65', 'hex'),
    Buffer.from('00000021', 'hex'),
    Buffer.from('00000020', 'hex'),
  ],
  structure: KEY_FILE,
  longest: 8192,
  run(input) {
    const isFormatError = (error: unknown) => error instanceof SshFormatError;
    const text = input.toString('latin1');
    const keys = attempt(() => readAuthorityKeys(text), isFormatError);
    rule(keys === undefined || keys.length > 0, 'no key is read, and no error is thrown');
    const key = attempt(() => readPrivateKey(text), isFormatError);
    if (!key) return keys !== undefined;
    if (key.asymmetricKeyType === 'ed25519') {
      const again = readPrivateKey(writePrivateKey(key, 'fuzz'));
      rule(publicKeyBlob(again).equals(publicKeyBlob(key)), 'a written key is read as another key');
    }
    return true;
  },
};
