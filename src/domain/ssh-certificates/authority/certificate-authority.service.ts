import { type KeyObject, generateKeyPairSync } from 'node:crypto';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import { systemClock } from '#platform/clock/clock.js';
import type { Config } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { nonceBytes } from '#platform/clock/random.js';
import { createKeyFile, readKeyFile } from './ca-key-file.js';
import {
  publicKeyBlob,
  publicKeyLine,
  readPrivateKey,
  writePrivateKey,
} from '#domain/ssh-certificates/openssh/private-key.js';
import { SshAuthorityRepository } from './ssh-authority.repository.js';
import { sshFingerprint } from '#domain/ssh-certificates/openssh/public-key.js';
import { SshFormatError } from '#domain/ssh-certificates/openssh/wire.js';
import {
  type UserCertificate,
  signUserCertificate,
} from '#domain/ssh-certificates/openssh/user-certificate.js';

/**
 * The deployment's one SSH certificate authority. Opened once, at start, by {@link CertificateAuthority.open}: its key
 * is the one this database was made with, or the process does not start.
 */
export class CertificateAuthority {
  /** `SHA256:…`, as `ssh-keygen -l` prints it. */
  readonly fingerprint: string;
  /** The comment of the public key, which names the deployment. */
  readonly comment: string;
  /** Its public key in the SSH wire encoding. */
  readonly publicBlob: Buffer;
  readonly #privateKey: KeyObject;

  private constructor(privateKey: KeyObject, comment: string) {
    this.#privateKey = privateKey;
    this.publicBlob = publicKeyBlob(privateKey);
    this.fingerprint = sshFingerprint(this.publicBlob);
    this.comment = comment;
  }

  /**
   * Loads the key (SVC_SSH_CA_KEY, else the file of SVC_SSH_CA_KEY_PATH), checks it against the fingerprint on
   * record and moves the serials forward. A missing file is generated only into a database that knows no authority:
   * a new key beside an old record would lock everyone out of every host.
   * @throws ConfigProblems, naming the variable and what is wrong with it, never the key
   */
  static open(
    config: Pick<Config, 'ssh' | 'relyingParty'>,
    dataSource: DataSource,
    repository: SshAuthorityRepository,
  ): Promise<CertificateAuthority> {
    return dataSource.transaction(async (tx) => {
      await repository.lock(tx);
      const comment = `ssh-ca@${config.relyingParty.id}`;
      const authority = new CertificateAuthority(
        await loadKey(config.ssh, comment, await repository.known(tx)),
        comment,
      );
      const recorded = await repository.record(tx, authority.fingerprint);
      if (recorded !== authority.fingerprint) {
        throw problem(
          `${keyVariable(config.ssh)}: holds the key ${authority.fingerprint}, but this database belongs to the SSH certificate authority ${recorded}`,
        );
      }
      await repository.moveSerialForward(tx, systemClock.milliseconds());
      return authority;
    });
  }

  /** The line for `TrustedUserCAKeys`. */
  publicKeyLine(): string {
    return publicKeyLine(this.publicBlob, this.comment);
  }

  /** Signs a certificate that is on record already; see {@link signUserCertificate} for the line it returns. */
  sign(certificate: Omit<UserCertificate, 'nonce'>): string {
    return signUserCertificate(
      { ...certificate, nonce: nonceBytes(32) },
      { privateKey: this.#privateKey, publicBlob: this.publicBlob },
    );
  }
}

async function loadKey(
  ssh: Config['ssh'],
  comment: string,
  known: string | undefined,
): Promise<KeyObject> {
  const variable = keyVariable(ssh);
  let text: string | undefined;
  try {
    text = ssh.caKey ?? (await readKeyFile(ssh.caKeyPath));
    if (text === undefined && known === undefined) {
      const { privateKey } = generateKeyPairSync('ed25519');
      text = await createKeyFile(ssh.caKeyPath, writePrivateKey(privateKey, comment));
    }
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : 'unknown';
    throw problem(`${variable}: the file can be neither read nor made (${String(code)})`, cause);
  }
  if (text === undefined) {
    throw problem(
      `${variable}: the file does not exist, but this database belongs to the SSH certificate authority ${known}; restore its key`,
    );
  }
  try {
    return readPrivateKey(text);
  } catch (error) {
    if (!(error instanceof SshFormatError)) throw error;
    throw problem(`${variable}: cannot be used: ${error.message}`, error);
  }
}

function keyVariable(ssh: Config['ssh']): string {
  return ssh.caKey === undefined ? 'SVC_SSH_CA_KEY_PATH' : 'SVC_SSH_CA_KEY';
}

/** Builds the error of a wrong setting. The process prints it and does not start. */
function problem(line: string, cause?: unknown): ConfigProblems {
  const problems = new ConfigProblems([line]);
  problems.cause = cause;
  return problems;
}
