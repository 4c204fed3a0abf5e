import { Injectable } from '@nestjs/common';
import {
  dismissNotices,
  listNotices,
  type AccountNotice,
} from '#domain/audit/notices/account-notices.repository.js';
import {
  deadLettersOfOwner,
  type OwnDeadLetter,
} from '#domain/oauth/logout-notices/dead-letters.repository.js';
import { SecurityKeys } from '#domain/sign-in/key-authentication/security-keys.service.js';
import type { SessionUser, VerifiedSession } from '#domain/sessions/session.js';
import { Sessions } from '#domain/sessions/sessions.service.js';
import { Clock } from '#platform/clock/clock.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { PATIENCE_DURING_RESPONSE, TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { exportedJson } from './account-export.js';
import { OwnAccess } from './own-access.service.js';
import { countOwnApplications } from './own-applications.repository.js';
import { readHeldRecords } from './held-records.repository.js';
import { countOwnCertificates } from '#domain/ssh/own-certificates.repository.js';
import { listOwnEvents, type EventRange, type OwnEvent } from './own-events.repository.js';
import { pageOf, type OwnPage } from './own-page.js';
import { listOwnReach, timeOfOwnReach } from './own-reach/own-reach.repository.js';
import { digestOf, ownReach, type OwnReach } from './own-reach/own-reach.js';

/** The number of security keys, sessions and other items that a user has now. */
export interface OpenCounts {
  readonly keys: number;
  readonly sessions: number;
  readonly certificates: number;
  readonly applications: number;
}

/**
 * The user who reads the own account. The limits on database use count by the organization; for a
 * user without one, they count by the user.
 */
export type AccountOwner = Pick<SessionUser, 'id' | 'orgId'>;

/**
 * The account of a user as the user sees it: keys, sessions, past events, and an export of the
 * stored data about the user.
 */
@Injectable()
export class OwnAccount {
  constructor(
    private readonly dataSource: DataSource,
    private readonly work: TenantWork,
    private readonly keys: SecurityKeys,
    private readonly sessions: Sessions,
    private readonly access: OwnAccess,
    private readonly clock: Clock,
  ) {}

  /** Counts the security keys, sessions, SSH certificates and applications that a user has now. */
  async countOpen(userId: string): Promise<OpenCounts> {
    const { manager } = this.dataSource;
    const [keys, sessions, certificates, applications] = await Promise.all([
      this.keys.list(userId),
      this.sessions.list(userId),
      countOwnCertificates(manager, userId),
      countOwnApplications(manager, userId),
    ]);
    return { keys: keys.length, sessions: sessions.length, certificates, applications };
  }

  /**
   * Lists the logout notices that were not accepted by the applications of the user (those that the
   * user registered). Only a user without an organization gets this list; the notices for
   * applications of an organization are for its admins.
   */
  async deadLetters({ id, orgId }: VerifiedSession['user']): Promise<readonly OwnDeadLetter[]> {
    return orgId === null ? deadLettersOfOwner(this.dataSource.manager, id) : [];
  }

  /**
   * Lists the notices about the account that a user has not dismissed, the newest first, and only
   * as many as a page shows.
   */
  notices(userId: string): Promise<AccountNotice[]> {
    return listNotices(this.dataSource.manager, userId);
  }

  /** Removes the notices of a user that a page showed, by their ids. */
  dismissNotices(userId: string, shown: readonly string[]): Promise<void> {
    return dismissNotices(this.dataSource.manager, userId, shown);
  }

  /** Lists the events of which a user is the actor or the subject, the newest first. */
  async activity(userId: string, { after, limit }: EventRange): Promise<OwnPage<OwnEvent>> {
    const range = { after, limit: limit + 1 };
    return pageOf(await listOwnEvents(this.dataSource.manager, userId, range), limit);
  }

  /**
   * Lists the targets, such as AWS roles, that admit a user now. The read counts toward the limit
   * on the database connections and time of the user's organization. This limit is needed because
   * the start page has no rate limit, and an organization may have many targets.
   */
  async reach({ id, orgId }: AccountOwner): Promise<OwnReach> {
    return ownReach(await this.work.costly(orgId ?? id, (tx) => listOwnReach(tx, id)));
  }

  /**
   * Lists the targets that admit a user, with the time at which the service first found exactly
   * these targets.
   */
  async setup(user: AccountOwner): Promise<{ readonly reach: OwnReach; readonly changedAt: Date }> {
    const { manager } = this.dataSource;
    const reach = await this.reach(user);
    const changedAt = await timeOfOwnReach(manager, user.id, digestOf(reach));
    return { reach, changedAt: changedAt ?? this.clock.now() };
  }

  /**
   * Exports what the service stores about a user, as parts of one JSON document. It leaves out
   * secrets, memberships in SCIM groups, and the oldest rows of very long lists. Each part is read
   * after a check that the session is still valid. The reads count toward the limit on the database
   * connections and time of the user's organization. So no export can use up the connections that
   * other users need.
   *
   * @throws DomainError unauthenticated if the session has ended or the account was removed. A read
   *   of a later part can throw it too
   */
  async export(session: VerifiedSession): Promise<AsyncGenerator<string>> {
    const { id, orgId } = session.user;
    const read = <Found>(part: (tx: EntityManager) => Promise<Found>, patience?: number) => {
      const checked = async (tx: EntityManager) => {
        await this.sessions.assertHeld(tx, session.id);
        return part(tx);
      };
      return this.work.costly(orgId ?? id, checked, patience);
    };
    const records = await read((tx) => readHeldRecords(tx, id));
    if (!records) throw new DomainError('unauthenticated', 'This account was removed.');
    const applications = await this.access.applications(id);
    const head = { exportedAt: this.clock.now(), records, applications };
    return exportedJson(id, head, (part) => read(part, PATIENCE_DURING_RESPONSE));
  }
}
