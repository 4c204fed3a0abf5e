import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { QueryBatcher } from '#platform/database/statements/query-batcher.js';
import { CertificateAuthority } from '../authority/certificate-authority.service.js';
import { encodeKeyRevocationList } from '@svc/openssh';
import {
  isRevokedSerial,
  listRevoked,
  listRevokedSignatures,
  versionOfSignatures,
  lockPublication,
  publishList,
  type Publication,
  type Revoked,
  type RevokedSerials,
} from './published-revocations.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** A set of revoked serials, with the number and the date of its publication. */
export interface PublishedRevocations extends Publication, RevokedSerials {}

/** The last serial that the database sequence can give. */
const LARGEST_SERIAL = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * The revocation list of certificates for hosts. A request gets the result of a statement that
 * began after the request and read every serial. So if a revocation was committed before a list is
 * requested, the list contains it, on every replica. The last set is kept in memory together with
 * its digest. If the digest in the database is the same, PostgreSQL need not send the set again.
 */
@Injectable()
export class RevocationList {
  /**
   * Requests that arrive while a list is read share the next read, so that many hosts cause few
   * statements.
   */
  readonly #lists = new QueryBatcher<undefined, PublishedRevocations>(async (asked) => {
    const list = await this.#read();
    return asked.map(() => list);
  });
  readonly #signatures = new QueryBatcher<undefined, Buffer>(async (asked) => {
    const list = await this.#encodeSignatures();
    return asked.map(() => list);
  });
  #lastSignatures: { readonly version: string; readonly bytes: Buffer } | undefined;
  #lastSet: RevokedSerials | undefined;
  #lastList: PublishedRevocations | undefined;

  constructor(
    private readonly dataSource: DataSource,
    private readonly authority: CertificateAuthority,
  ) {}

  /**
   * Reads the revoked certificates, without those that expired more than an hour ago. As long as
   * the set is the same, its number and date are the same. If the set is new, one request gives it
   * a number, and other requests wait and then read again. So an older set is never published under
   * a later number.
   */
  list(): Promise<PublishedRevocations> {
    return this.#lists.load(undefined);
  }

  /**
   * Encodes the revocation list as a file for sshd's `RevokedKeys` (OpenSSH PROTOCOL.krl). The same
   * list gives the same bytes, so that a host can notice that nothing changed.
   */
  encode(list: PublishedRevocations): Buffer {
    return encodeKeyRevocationList({ ...list, comment: this.authority.comment });
  }

  /**
   * Encodes the list by which git refuses signatures (`gpg.ssh.revocationFile`). It has every
   * certificate that was revoked while it was valid, and never forgets one.
   */
  signatures(): Promise<Buffer> {
    return this.#signatures.load(undefined);
  }

  /**
   * Returns true for a revoked serial by the rule of {@link isRevokedSerial}. Unlike the list, the
   * rule still knows certificates that expired more than an hour ago.
   */
  async isRevoked(serial: bigint): Promise<boolean> {
    if (serial > LARGEST_SERIAL) return false;
    return isRevokedSerial(this.dataSource.manager, serial);
  }

  /**
   * Encodes the list for git again only if it has changed. The list grows for years, so each
   * encoding would take longer than the last.
   */
  async #encodeSignatures(): Promise<Buffer> {
    const { manager } = this.dataSource;
    const version = await versionOfSignatures(manager);
    if (this.#lastSignatures?.version === version) return this.#lastSignatures.bytes;
    const { changedAt, ...revoked } = await listRevokedSignatures(manager);
    const number = BigInt(changedAt.getTime());
    const { comment } = this.authority;
    const bytes = encodeKeyRevocationList({ ...revoked, number, generatedAt: changedAt, comment });
    this.#lastSignatures = { version, bytes };
    return bytes;
  }

  async #read(): Promise<PublishedRevocations> {
    const { revoked, publication } = await this.#revoked(this.dataSource.manager);
    if (publication) return this.#published(revoked, publication);
    return withTransactionRetry(this.dataSource, async (tx) => {
      await lockPublication(tx);
      const now = await this.#revoked(tx);
      const published = now.publication ?? (await publishList(tx, now.revoked.digest));
      return this.#published(now.revoked, published);
    });
  }

  /**
   * Reads the revoked serials. If they have not changed, the object that is kept in memory is
   * returned.
   */
  async #revoked(tx: EntityManager): Promise<Revoked> {
    const { revoked, publication } = await listRevoked(tx, this.#lastSet);
    if (!this.#lastSet?.digest.equals(revoked.digest)) this.#lastSet = revoked;
    return { revoked: this.#lastSet, publication };
  }

  #published(revoked: RevokedSerials, { number, generatedAt }: Publication): PublishedRevocations {
    const last = this.#lastList;
    const isLast =
      last?.authorities === revoked.authorities &&
      last.number === number &&
      last.generatedAt.getTime() === generatedAt.getTime();
    if (isLast) return last;
    return (this.#lastList = { ...revoked, number, generatedAt });
  }
}
