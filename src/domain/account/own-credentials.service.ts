import { Injectable } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { UserDirectory } from '#domain/directory/user-directory.service.js';
import type { SessionUser } from '#domain/sessions/session.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  revokeOwnCertificate,
  type RevokedOwnCertificate,
} from '#domain/ssh/own-certificates.repository.js';
import { ownCredential, type OwnCredential } from './own-credential.js';
import { listOwnIssuances, type EventRange } from './own-events.repository.js';
import { pageOf, type OwnPage } from './own-page.js';

/** A serial of a certificate: below 2^53, so at most 16 digits. */
const SERIAL = /^\d{1,16}$/;

/** The credentials that were issued in the name of a user. */
@Injectable()
export class OwnCredentials {
  constructor(
    private readonly dataSource: DataSource,
    private readonly directory: UserDirectory,
    private readonly audit: AuditLog,
  ) {}

  /** Lists the credentials that were issued to a user, the newest first. */
  async page(userId: string, { after, limit }: EventRange): Promise<OwnPage<OwnCredential>> {
    const range = { after, limit: limit + 1 };
    const events = await listOwnIssuances(this.dataSource.manager, userId, range);
    const { items, next } = pageOf(events, limit);
    return { items: items.map(ownCredential), next };
  }

  /**
   * Revokes one live SSH certificate of a user. It is in the next key revocation list.
   *
   * @throws DomainError not_found for a serial that is no live certificate of the user;
   *   account_inactive
   */
  async revokeCertificate(
    user: SessionUser,
    serial: string,
    origin: AuditOrigin,
  ): Promise<RevokedOwnCertificate> {
    return this.dataSource.transaction(async (tx) => {
      await this.directory.lockActive(tx, user.id);
      const revoked = SERIAL.test(serial)
        ? await revokeOwnCertificate(tx, user.id, serial)
        : undefined;
      if (!revoked) throw new DomainError('not_found', 'You have no such live certificate.');
      await this.audit.record(tx, {
        type: 'ssh_certificate_revoked',
        actorId: user.id,
        subjectId: user.id,
        orgId: user.orgId,
        origin,
        details: { serial: revoked.serial, key_id: revoked.keyId },
      });
      return revoked;
    });
  }
}
