import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { CertificateAuthority } from './certificate-authority.service.js';
import { encodeKeyRevocationList } from './key-revocation-list.js';
import { type Publication, SshRevocationsRepository } from './ssh-revocations.repository.js';

/** What is revoked, and the number and date under which it is published. */
export interface PublishedRevocations extends Publication {
  /** Ascending. */
  readonly serials: readonly number[];
}

/** No certificate has a larger serial: the end of the sequence that they come from. */
const LARGEST_SERIAL = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * What was revoked, as others are told. Nothing is kept between two questions: a list that is asked for after a
 * revocation was committed has it, on every replica.
 */
@Injectable()
export class Revocations {
  constructor(
    private readonly dataSource: DataSource,
    private readonly authority: CertificateAuthority,
    private readonly repository: SshRevocationsRepository,
  ) {}

  /**
   * The certificates that are revoked and expired less than an hour ago, if at all. While they are the same, so are
   * number and date, for everybody. A change gets a new number once, from whoever asks first; those who ask meanwhile
   * wait and look again, so that nothing earlier ever comes under a later number.
   */
  async list(): Promise<PublishedRevocations> {
    const { repository } = this;
    const { serials, publication } = await repository.revoked(this.dataSource.manager);
    if (publication) return { ...publication, serials };
    return this.dataSource.transaction(async (tx) => {
      await repository.lock(tx);
      const now = await repository.revoked(tx);
      const published = now.publication ?? (await repository.publish(tx, now.digest));
      return { ...published, serials: now.serials };
    });
  }

  /** Writes a list for sshd's `RevokedKeys` (OpenSSH PROTOCOL.krl); the same list is the same bytes. */
  encode(list: PublishedRevocations): Buffer {
    const { publicBlob, comment } = this.authority;
    return encodeKeyRevocationList({ ...list, comment, authority: publicBlob });
  }

  /** Whether this certificate was revoked, also once it has dropped out of the list. */
  async isRevoked(serial: bigint): Promise<boolean> {
    if (serial > LARGEST_SERIAL) return false;
    return this.repository.isRevoked(this.dataSource.manager, serial);
  }
}
