import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { QueryBatcher } from '#platform/database/statements/query-batcher.js';
import { CertificateAuthority } from '#domain/ssh-certificates/authority/certificate-authority.service.js';
import { encodeKeyRevocationList } from './key-revocation-list.js';
import {
  type Publication,
  type Revoked,
  type RevokedSerials,
  SshRevocationsRepository,
} from './ssh-revocations.repository.js';

/** What is revoked, and the number and date under which it is published. */
export interface PublishedRevocations extends Publication, RevokedSerials {}

/** No certificate has a larger serial: the end of the sequence that they come from. */
const LARGEST_SERIAL = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * What was revoked, as others are told. Each answer rests on a statement that began after it was asked for and read every
 * serial: a list that is asked for after a revocation was committed has it, on every replica, in whatever order
 * transactions committed. What is kept is only the last set, so that it need not travel again: whether it still is the
 * set, PostgreSQL says each time, by the digest of what it read.
 */
@Injectable()
export class RevocationList {
  /** Whoever waits while lists are read shares the next one. */
  readonly #lists = new QueryBatcher<undefined, PublishedRevocations>(async (asked) => {
    const list = await this.#read();
    return asked.map(() => list);
  });
  #lastSet: RevokedSerials | undefined;
  #lastList: PublishedRevocations | undefined;

  constructor(
    private readonly dataSource: DataSource,
    private readonly authority: CertificateAuthority,
    private readonly repository: SshRevocationsRepository,
  ) {}

  /**
   * The certificates that are revoked and expired less than an hour ago, if at all. While they are the same, so are
   * number and date, for everybody, and mostly it is the same object. A change gets a new number once, from whoever asks
   * first; those who ask meanwhile wait and look again, so that nothing earlier ever comes under a later number.
   */
  list(): Promise<PublishedRevocations> {
    return this.#lists.load(undefined);
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

  async #read(): Promise<PublishedRevocations> {
    const { revoked, publication } = await this.#revoked(this.dataSource.manager);
    if (publication) return this.#published(revoked, publication);
    return this.dataSource.transaction(async (tx) => {
      await this.repository.lock(tx);
      const now = await this.#revoked(tx);
      const published = now.publication ?? (await this.repository.publish(tx, now.revoked.digest));
      return this.#published(now.revoked, published);
    });
  }

  /** Several statements may bring the same new set: one of them is kept, and written. */
  async #revoked(tx: EntityManager): Promise<Revoked> {
    const { revoked, publication } = await this.repository.revoked(tx, this.#lastSet);
    if (!this.#lastSet?.digest.equals(revoked.digest)) this.#lastSet = revoked;
    return { revoked: this.#lastSet, publication };
  }

  #published(revoked: RevokedSerials, { number, generatedAt }: Publication): PublishedRevocations {
    const last = this.#lastList;
    const isLast =
      last?.serials === revoked.serials &&
      last.number === number &&
      last.generatedAt.getTime() === generatedAt.getTime();
    if (isLast) return last;
    return (this.#lastList = { ...revoked, number, generatedAt });
  }
}
