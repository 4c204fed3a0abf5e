import { Injectable } from '@nestjs/common';
import { validate as isUuid } from 'uuid';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { withoutZeros, type RevokedCounts } from '#domain/access-revocation/revocable.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { AuthenticatorsRepository } from '#domain/keys/authenticators/authenticators.repository.js';
import { Members, type MemberAct } from '#domain/directory/members.service.js';
import type { Member } from '#domain/directory/users.repository.js';
import { countTokens } from '#domain/github/tokens/ending-tokens.repository.js';
import { SessionsRepository } from '#domain/sessions/sessions.repository.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** Ends one session or one security key of a member, for an admin of the organization. */
@Injectable()
export class MemberAccess {
  constructor(
    private readonly work: TenantWork,
    private readonly members: Members,
    private readonly sessions: SessionsRepository,
    private readonly keys: AuthenticatorsRepository,
    private readonly accessRevocation: AccessRevocation,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Ends one session of a member, with every grant, code and token that was issued in it. If
   * several requests end it at once, one succeeds.
   *
   * @throws DomainError admin_required, own_account; not_found if there is no such member, or if
   *   the member has no such live session
   */
  async endSession(act: MemberAct, sessionId: string): Promise<RevokedCounts> {
    return this.work.transact(act.admin.orgId, async (tx) => {
      const member = await this.members.lockForAct(tx, act);
      if (!isUuid(sessionId)) throw noSession();
      const counts = await this.sessions.countOfOne(tx, sessionId);
      const github = await countTokens(tx, member.id, sessionId);
      const session = await this.sessions.deleteOwn(tx, member.id, sessionId);
      if (!session) throw noSession();
      const ended = { ...counts, ...withoutZeros({ github_tokens: github }) };
      const { ip, userAgent, client } = session;
      await this.audit.record(tx, {
        type: 'session_ended',
        ...of(act, member),
        details: {
          email: member.email,
          session_id: session.id,
          ...(client && { client_id: client.id }),
          opened_from: { ip, user_agent: userAgent },
          ...ended,
        },
      });
      return ended;
    });
  }

  /**
   * Removes one security key of a member, with the sessions and other access that were opened with
   * the key.
   *
   * @throws DomainError admin_required, own_account; not_found for no such member or key; last_key
   *   for the only key
   */
  async removeKey(act: MemberAct, keyId: string): Promise<RevokedCounts> {
    return this.work.transact(act.admin.orgId, async (tx) => {
      const member = await this.members.lockForAct(tx, act);
      const key = isUuid(keyId)
        ? await this.keys.find(tx, member.id, keyId.toLowerCase())
        : undefined;
      if (!key) throw new DomainError('not_found', 'This member has no such key.');
      if (member.keys === 1) throw onlyKey();
      const opened = (await this.accessRevocation.countByKey(tx, member.id)).get(key.id);
      const cause = { reason: 'key removed by an admin', revokedBy: act.admin.id };
      const counts = await this.accessRevocation.endOfKey(tx, member, key.id, cause);
      const ended = { keys: 1, ...opened, ...counts };
      await this.audit.record(tx, {
        type: 'key_removed',
        ...of(act, member),
        details: {
          email: member.email,
          key_id: key.id,
          name: key.name,
          aaguid: key.aaguid,
          ...ended,
        },
        acts: [{ kind: 'key_removed', userId: member.id, keyId: key.id, ...cause }],
      });
      return ended;
    });
  }
}

function of({ admin, origin }: MemberAct, { id }: Member) {
  return { actorId: admin.id, subjectId: id, orgId: admin.orgId, origin };
}

function noSession(): DomainError {
  return new DomainError('not_found', 'This member has no such session.');
}

function onlyKey(): DomainError {
  return new DomainError(
    'last_key',
    'This is the only key of the member. Revoke the credentials of the member instead.',
  );
}
