import { generateKeyPairSync } from 'node:crypto';
import type { Config } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import type { Signer } from '#platform/crypto/signer.js';
import { readAuthorityKeys, writePrivateKey, SshFormatError } from '@svc/openssh';
import { createKeyFile, readKeyFile } from './ca-key-file.js';
import {
  type AuthorityKey,
  authorityKey,
  localSigningKey,
  remoteSigningKey,
  type SigningKey,
} from './signing-key.js';

/**
 * The configured keys of the SSH authority: the key that signs, and further keys that hosts are
 * told to trust but that sign nothing now.
 */
export interface ConfiguredKeys {
  readonly signing: SigningKey;
  readonly published: readonly AuthorityKey[];
}

/**
 * Reads the keys of the configuration. If there is a key in KMS, it signs, and the keys of
 * SVC_SSH_CA_KEY or of the file are only published. If the key file is missing, a key is generated
 * only if KMS has no key and the database knows none.
 *
 * @param comment the comment that a generated key gets in its file
 * @param known the fingerprints of the keys that the database has recorded
 * @param inKms the keys in KMS; the first one signs
 * @throws ConfigProblems, naming the variable and what is wrong with it, never the key
 */
export async function configuredKeys(
  ssh: Config['ssh'],
  comment: string,
  known: readonly string[],
  inKms: readonly Signer[],
): Promise<ConfiguredKeys> {
  const remote = inKms.map(remoteSigningKey);
  const mayGenerate = remote.length === 0 && known.length === 0;
  const text = await keyText(ssh, mayGenerate ? comment : undefined);
  if (text === undefined && remote.length === 0) {
    throw problem(
      `${keyVariable(ssh)}: the file does not exist, but this database belongs to the SSH certificate authority ${known.join(', ')}; restore its key`,
    );
  }
  const local = text === undefined ? [] : readKeys(ssh, text);
  const [first] = local;
  const signing = remote[0] ?? (first?.privateKey ? localSigningKey(first.privateKey) : undefined);
  if (!signing) {
    throw problem(
      `${keyVariable(ssh)}: cannot be used: the first key signs, and it is a public key; put the private key before it`,
    );
  }
  const others = [
    ...remote,
    ...local.map(({ publicBlob }): AuthorityKey => authorityKey(publicBlob)),
  ];
  const byFingerprint = new Map(others.map((key) => [key.fingerprint, key]));
  byFingerprint.delete(signing.fingerprint);
  return { signing, published: [...byFingerprint.values()] };
}

/**
 * Returns the name of the environment variable from which the keys come, for an error text.
 * `SVC_SSH_CA_KEY` holds the keys themselves, and `SVC_SSH_CA_KEY_PATH` the path of their file.
 */
export function keyVariable(ssh: Config['ssh']): string {
  return ssh.caKey === undefined ? 'SVC_SSH_CA_KEY_PATH' : 'SVC_SSH_CA_KEY';
}

/**
 * Returns the error for a wrong setting of the keys. The process prints the error and does not
 * start.
 */
export function problem(line: string, cause?: unknown): ConfigProblems {
  const problems = new ConfigProblems([line]);
  problems.cause = cause;
  return problems;
}

/**
 * Reads the text of the keys from the setting or the file. If the file is missing and `comment` is
 * given, a key with this comment is generated.
 */
async function keyText(
  ssh: Config['ssh'],
  comment: string | undefined,
): Promise<string | undefined> {
  try {
    const text = ssh.caKey ?? (await readKeyFile(ssh.caKeyPath));
    if (text !== undefined || comment === undefined) return text;
    const { privateKey } = generateKeyPairSync('ed25519');
    return await createKeyFile(ssh.caKeyPath, writePrivateKey(privateKey, comment));
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : 'unknown';
    throw problem(
      `${keyVariable(ssh)}: the file can be neither read nor made (${String(code)})`,
      cause,
    );
  }
}

function readKeys(ssh: Config['ssh'], text: string) {
  try {
    return readAuthorityKeys(text);
  } catch (error) {
    if (!(error instanceof SshFormatError)) throw error;
    throw problem(`${keyVariable(ssh)}: cannot be used: ${error.message}`, error);
  }
}
