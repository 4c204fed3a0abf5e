import { Injectable } from '@nestjs/common';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { validate as isUuid } from 'uuid';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import type { RevokedCounts } from '#domain/access-revocation/revocable.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import {
  AuthenticatorsRepository,
  type Authenticator,
  type Credential,
} from '#domain/keys/authenticators/authenticators.repository.js';
import { UserDirectory } from '#domain/directory/user-directory.service.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Sessions } from '#domain/sessions/sessions.service.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * Lists, renames and removes the security keys of a user. The removal of a key also ends everything
 * that was opened with it.
 */
@Injectable()
export class SecurityKeys {
  constructor(
    private readonly dataSource: DataSource,
    private readonly directory: UserDirectory,
    private readonly keys: AuthenticatorsRepository,
    private readonly sessions: Sessions,
    private readonly accessRevocation: AccessRevocation,
    private readonly audit: AuditLog,
  ) {}

  /** Lists the keys of a user, the oldest first. */
  list(userId: string): Promise<Authenticator[]> {
    return this.keys.list(this.dataSource.manager, userId);
  }

  /**
   * Lists the WebAuthn credentials of a user. A browser gets this list so that the user does not
   * enroll the same key twice.
   */
  listCredentials(userId: string): Promise<Credential[]> {
    return this.keys.listCredentials(this.dataSource.manager, userId);
  }

  /**
   * Counts the sessions, certificates and other items that the removal of each key of a user would
   * end. A key with which nothing was opened is not in the result.
   */
  countAccess(userId: string): Promise<ReadonlyMap<string, RevokedCounts>> {
    return this.accessRevocation.countByKey(this.dataSource.manager, userId);
  }

  /**
   * Removes a key and all access that was opened with it, in one transaction: its sessions with
   * their grants, codes and tokens, and the certificates. The row of the user is locked first. So
   * if two requests remove the last two keys at once, the second request fails and the last key
   * stays.
   *
   * @returns the number of sessions that ended; the session of the request may be one of them
   * @throws DomainError not_found, last_key, account_inactive, unauthenticated
   */
  async remove(session: VerifiedSession, id: string, origin: AuditOrigin): Promise<number> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      const user = await this.directory.lockActive(tx, session.user.id);
      await this.sessions.assertHeld(tx, session.id);
      const key = isUuid(id) ? await this.keys.find(tx, user.id, id.toLowerCase()) : undefined;
      if (!key) throw noSuchKey();
      const cause = { reason: 'key removed', revokedBy: user.id };
      // Some items are deleted by a foreign key together with their session, and their number is
      // not returned. So they are counted before they end.
      const opened = (await this.accessRevocation.countByKey(tx, user.id)).get(key.id);
      const ended = await this.accessRevocation.endOfKey(tx, user, key.id, cause);
      const counts = { ...opened, ...ended };
      await this.audit.record(tx, {
        type: 'key_removed',
        actorId: user.id,
        subjectId: user.id,
        orgId: user.orgId,
        origin,
        details: { key_id: key.id, name: key.name, aaguid: key.aaguid, ...counts },
        acts: [{ kind: 'key_removed', userId: user.id, keyId: key.id, ...cause }],
      });
      return counts['sessions'] ?? 0;
    });
  }

  /**
   * Renames a key, unless the session has ended since the request came.
   *
   * @throws DomainError not_found for an id that is not a key of the user; account_inactive,
   *   unauthenticated
   */
  async rename(
    session: VerifiedSession,
    id: string,
    name: string,
    origin: AuditOrigin,
  ): Promise<Authenticator> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      const user = await this.directory.lockActive(tx, session.user.id);
      await this.sessions.assertHeld(tx, session.id);
      const renamed = isUuid(id) ? await this.keys.rename(tx, user.id, id, name) : undefined;
      if (!renamed) throw noSuchKey();
      const { key, earlierName } = renamed;
      await this.audit.record(tx, {
        type: 'key_renamed',
        actorId: user.id,
        subjectId: user.id,
        orgId: user.orgId,
        origin,
        details: { key_id: key.id, name, earlier_name: earlierName },
      });
      return key;
    });
  }
}

function noSuchKey(): DomainError {
  return new DomainError('not_found', 'You have no such key.');
}
