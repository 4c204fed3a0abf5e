import { Injectable } from '@nestjs/common';
import { validate as isUuid } from 'uuid';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { Members } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { confirmSecret, listUnconfirmed, type ListedSecret } from './listed-secrets.repository.js';

/**
 * The secrets that the admins of an organization must confirm, because the database has lost
 * commits.
 */
@Injectable()
export class SecretsToConfirm {
  constructor(
    private readonly dataSource: DataSource,
    private readonly members: Members,
    private readonly audit: AuditLog,
  ) {}

  /** Lists the secrets that no admin has confirmed yet, the newest first. */
  list({ orgId }: Admin): Promise<ListedSecret[]> {
    return listUnconfirmed(this.dataSource.manager, orgId);
  }

  /**
   * Records that an admin has confirmed a secret. If several admins confirm it at once, one
   * succeeds.
   *
   * @throws DomainError admin_required; not_found for a secret of another organization, and for a
   *   confirmed one
   */
  async confirm(admin: Admin, id: string, origin: AuditOrigin): Promise<void> {
    await this.dataSource.transaction(async (tx) => {
      await this.members.holdAdmin(tx, admin);
      const confirmed = isUuid(id) ? await confirmSecret(tx, admin, id) : undefined;
      if (!confirmed) {
        throw new DomainError('not_found', 'Your organization has no such secret to confirm.');
      }
      const { secret, secretId, clientId, act, isLost } = confirmed;
      const about = secret === 'scim_token' ? { scim_token_id: secretId } : { secret_id: secretId };
      const client = clientId === null ? {} : { client_id: clientId };
      await this.audit.record(tx, {
        type: 'secret_confirmed',
        actorId: admin.id,
        subjectId: null,
        orgId: admin.orgId,
        origin,
        details: { ...about, ...client, act, database_lost: isLost },
      });
    });
  }
}
