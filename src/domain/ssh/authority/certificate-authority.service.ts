import { Logger } from '@nestjs/common';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import type { Config } from '#platform/config/config.js';
import { nonceBytes } from '#platform/clock/random.js';
import type { Signer } from '#platform/crypto/signer.js';
import { publicKeyLine, type UserCertificate, signUserCertificate } from '@svc/openssh';
import { configuredKeys, type ConfiguredKeys, keyVariable, problem } from './configured-keys.js';
import type { AuthorityKey, SigningKey } from './signing-key.js';
import {
  knownAuthorities,
  lastCertificates,
  lockAuthorities,
  publishAuthority,
  startSigning,
  type RecordedAuthority,
} from './ssh-authority.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** A certificate that the database has recorded and that is not signed yet. */
export type UnsignedCertificate = Omit<UserCertificate, 'nonce'>;

/**
 * The deployment's SSH certificate authority. One key signs the certificates. Hosts must also trust
 * the keys that signed before or will sign later, so these public keys are published, too. {@link
 * CertificateAuthority.open} opens the authority once, at start. A key that the database has not
 * recorded never signs.
 */
export class CertificateAuthority {
  readonly #signing: SigningKey;
  #listener: ((serial: bigint) => void) | undefined;

  private constructor(
    keys: ConfiguredKeys,
    /**
     * The comment at the end of the public key lines. It names the deployment, so that the operator
     * of a host recognizes the key.
     */
    readonly comment: string,
  ) {
    this.#signing = keys.signing;
    this.keys = [keys.signing, ...keys.published];
  }

  /** Every published key. The first key is the one that signs. */
  readonly keys: readonly AuthorityKey[];

  /** The fingerprint of the key that signs: `SHA256:…`, as `ssh-keygen -l` prints it. */
  get fingerprint(): string {
    return this.#signing.fingerprint;
  }

  /**
   * Loads the keys, checks that the database has recorded the signing key, and records the
   * published keys. If the database has no key yet, the first signing key is recorded. A key that
   * was never published must not sign, because no host trusts it yet.
   *
   * @param inKms the keys in KMS, which come before those of SVC_SSH_CA_KEY or of the file
   * @throws ConfigProblems, naming the variable and what is wrong with it, never the key
   */
  static async open(
    config: Pick<Config, 'ssh' | 'relyingParty'>,
    dataSource: DataSource,
    inKms: readonly Signer[] = [],
  ): Promise<CertificateAuthority> {
    const comment = `ssh-ca@${config.relyingParty.id}`;
    const { keys, known } = await withTransactionRetry(dataSource, async (tx) => {
      await lockAuthorities(tx);
      const onRecord = await knownAuthorities(tx);
      const fingerprints = onRecord.map(({ fingerprint }) => fingerprint);
      const configured = await configuredKeys(config.ssh, comment, fingerprints, inKms);
      const variable = inKms.length > 0 ? 'SVC_SSH_CA_KMS_KEY_ID' : keyVariable(config.ssh);
      await record(tx, configured, fingerprints, variable);
      return { keys: configured, known: onRecord };
    });
    const authority = new CertificateAuthority(keys, comment);
    await authority.#warn(known, dataSource.manager);
    return authority;
  }

  /** Returns the public half of the key that signs, as a line of a `.pub` file. */
  publicKeyLine(): string {
    return this.#line(this.#signing);
  }

  /**
   * Returns the lines for the file that sshd reads as `TrustedUserCAKeys`: every published key, the
   * signing key first.
   */
  publicKeyLines(): readonly string[] {
    return this.keys.map((key) => this.#line(key));
  }

  /**
   * Sets a function that is called with the serial of each certificate before the signature. The
   * process remembers the highest serial, so that no serial is issued twice if another database
   * takes over.
   */
  onSerial(listener: (serial: bigint) => void): void {
    this.#listener = listener;
  }

  /**
   * Signs a certificate that the database has already recorded.
   *
   * @returns the certificate as a line of a `-cert.pub` file
   */
  sign(certificate: UnsignedCertificate): Promise<string> {
    this.#listener?.(certificate.serial);
    return signUserCertificate({ ...certificate, nonce: nonceBytes(32) }, this.#signing);
  }

  #line({ publicBlob }: AuthorityKey): string {
    return publicKeyLine(publicBlob, this.comment);
  }

  /**
   * Logs a warning if certificates are still valid, but the key that signed them is no longer
   * published. Hosts that trust only the published keys refuse these certificates. It also logs the
   * first start with a new signing key.
   */
  async #warn(known: readonly RecordedAuthority[], tx: EntityManager): Promise<void> {
    const logger = new Logger('ssh-authority');
    const published = new Set(this.keys.map(({ fingerprint }) => fingerprint));
    const retired = known.filter(
      ({ fingerprint, signsSince }) => signsSince && !published.has(fingerprint),
    );
    const last = await lastCertificates(
      tx,
      retired.map(({ fingerprint }) => fingerprint),
    );
    for (const { fingerprint, validBefore } of last) {
      logger.warn(
        `the SSH authority ${fingerprint} is published no more, but certificates of it are valid until ${validBefore.toISOString()}; configure its public key until then`,
      );
    }
    const next = known.find(({ fingerprint }) => fingerprint === this.fingerprint);
    if (next?.signsSince === null) {
      logger.log(
        `the SSH authority ${this.fingerprint}, published since ${next.publishedAt.toISOString()}, signs from now on`,
      );
    }
  }
}

/**
 * Records the configured keys in the database. The signing key must already be recorded there, or
 * be the first key of the database, because any other key might be configured by mistake.
 */
async function record(
  tx: EntityManager,
  { signing, published }: ConfiguredKeys,
  known: readonly string[],
  variable: string,
): Promise<void> {
  if (known.length > 0 && !known.includes(signing.fingerprint)) {
    throw problem(
      `${variable}: holds the key ${signing.fingerprint}, but this database belongs to the SSH certificate authority ${known.join(', ')}; publish a new key behind the present one before it signs`,
    );
  }
  for (const { fingerprint, publicBlob } of [signing, ...published]) {
    await publishAuthority(tx, fingerprint, publicBlob);
  }
  if (!(await startSigning(tx, signing.fingerprint))) {
    throw new Error('the SSH authority was recorded outside its lock');
  }
}
