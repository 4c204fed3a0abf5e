import { Injectable } from '@nestjs/common';
import type { ReachDecision } from '#domain/access/reach/decision.js';
import { AccessEndings } from '#domain/access-revocation/ended-reach/access-endings.service.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { checkReader, type Reader } from '#domain/directory/api-tokens/reader.js';
import { Members } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { violatedConstraint } from '#platform/database/statements/faults.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { PATIENCE_DURING_RESPONSE, TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { isUuid } from '#platform/text/single-line.js';
import {
  findGroups,
  findNamed,
  holdGroups,
  holdPeople,
  listAssignments,
  replaceAssignments,
  type FoundGroup,
  type Named,
} from './assignments.repository.js';
import { linesOfReach, type ReachLine } from './reach-lines.js';
import {
  countOf,
  decisionOf,
  listAdmitted,
  listReach,
  readFacts,
  type ListedPerson,
} from './reach-of-people.repository.js';
import { eventsOf, type RuleAct, type RuleChange } from './rule-audit.js';
import {
  isSameRule,
  peopleOf,
  previewChange,
  type AskedChange,
  type HiddenPreview,
  type RulePreview,
} from './rule-preview.js';
import {
  isOfGroups,
  isTargetId,
  MOST_TARGETS,
  type Assignment,
  type MadeKind,
  type Target,
  type TargetRef,
  type WantedRule,
} from './target.js';
import { writeTargetCursor, type AdmittedQuery, type TargetQuery } from './target-query.js';
import {
  changeRule,
  changeTarget,
  countMade,
  deleteTarget,
  findTarget,
  insertTarget,
  listTargets,
  lockTarget,
  placeOf,
  target,
  type NewTarget,
  type TargetChange,
  type TargetRow,
} from './targets.repository.js';

/** The most groups that a form suggests to an admin who has typed the beginning of a name. */
const MOST_GROUPS = 20;

/**
 * A page of the list of targets, such as AWS roles. `next` is the cursor of the following page;
 * null on the last page.
 */
export interface TargetPage {
  readonly targets: readonly Target[];
  readonly next: string | null;
}

/** A target with its assignments: the users and groups that its access rule names. */
export interface TargetDetails {
  readonly target: Target;
  readonly assignments: readonly Assignment[];
}

/** A page of the people that the rule of a target admits. */
export interface AdmittedPage {
  /**
   * The number of people that the target admits. It is `MOST_COUNTED` plus one if there are more,
   * because counting stops there.
   */
  readonly count: number;
  /**
   * The people on the page. Null if the list would show who is in a group. The admin must then
   * touch the security key again before the list may be shown.
   */
  readonly people: readonly ListedPerson[] | null;
  readonly next: string | null;
}

/**
 * A page of targets, each with the decision if one person may use it. `next` is the cursor of the
 * following page; null on the last page.
 */
export interface ReachPage {
  readonly reached: readonly { readonly target: Target; readonly decision: ReachDecision }[];
  readonly next: string | null;
}

/**
 * Says if an admin may see names in a list that shows who is in a group. Such a list is shown only
 * after a recent touch of the security key.
 */
export interface Seen {
  /** True if the admin touched a security key in the last 5 minutes. */
  readonly mayName: boolean;
}

/**
 * The targets of organizations (applications, roles, groups of hosts, GitHub installations) and
 * their access rules, as admins read and change them.
 */
@Injectable()
export class AccessRules {
  constructor(
    private readonly work: TenantWork,
    private readonly members: Members,
    private readonly organizations: OrganizationsRepository,
    private readonly endings: AccessEndings,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Lists targets, sorted by kind and name.
   *
   * @throws DomainError admin_required
   */
  list(reader: Reader, query: TargetQuery): Promise<TargetPage> {
    return this.#read(reader, async (tx) => {
      const rows = await listTargets(tx, reader.orgId, { ...query, limit: query.limit + 1 });
      const { shown, next } = pageOf(rows, query.limit);
      return { targets: shown.map(target), next };
    });
  }

  /**
   * Returns a target with its assignments.
   *
   * @throws DomainError admin_required, not_found
   */
  show(reader: Reader, ref: TargetRef): Promise<TargetDetails> {
    return this.#read(reader, async (tx) => {
      const found = await this.#found(tx, reader, ref);
      return { target: found, assignments: await listAssignments(tx, found) };
    });
  }

  /**
   * Explains if the rule of a target admits a member. The conditions of the rule, such as the age
   * of the last touch of the security key, are not checked here. They are checked when a credential
   * is issued.
   *
   * @throws DomainError admin_required, not_found
   */
  check(reader: Reader, userId: string, ref: TargetRef): Promise<ReachDecision> {
    return this.#read(reader, async (tx) => {
      const found = await this.#found(tx, reader, ref);
      const facts = isUuid(userId) && (await readFacts(tx, reader.orgId, found, userId));
      if (!facts) throw noMember();
      return decisionOf(reader.orgId, found, facts);
    });
  }

  /**
   * Lists the active members that the rule of a target admits, in the order of their ids. If
   * `mayName` is false and the list would show who is in a group, the members are only counted.
   *
   * @throws DomainError admin_required, not_found
   */
  admitted(
    admin: Admin,
    ref: TargetRef,
    query: AdmittedQuery,
    { mayName }: Seen,
  ): Promise<AdmittedPage> {
    return this.#read(admin, async (tx) => {
      const { orgId } = admin;
      const found = await this.#found(tx, admin, ref);
      const count = await countOf(tx, orgId, await peopleOf(tx, found));
      if (!mayName && isOfGroups(found)) return { count, people: null, next: null };
      const { people, next } = await listAdmitted(tx, orgId, found, query);
      return { count, people, next };
    });
  }

  /**
   * Lists targets, each with the decision if one member may use it.
   *
   * @param onlyReached leaves out targets that do not admit the member
   * @throws DomainError admin_required, not_found
   */
  reachOf(
    admin: Admin,
    userId: string,
    query: TargetQuery,
    { onlyReached }: { readonly onlyReached: boolean },
  ): Promise<ReachPage> {
    return this.#read(admin, async (tx) => {
      const { active } = await this.members.find(tx, admin, userId);
      const range = { ...query, limit: query.limit + 1 };
      const rows = await listReach(tx, admin.orgId, { id: userId, active }, range, onlyReached);
      const { shown, next } = pageOf(rows, query.limit);
      const reached = shown.map((row) => ({
        target: target(row),
        decision: decisionOf(admin.orgId, target(row), {
          orgId: admin.orgId,
          active,
          isAssigned: row.is_assigned,
          isInGroup: row.is_in_group,
        }),
      }));
      return { reached, next };
    });
  }

  /**
   * Previews a change of a target's access rule: the people who would gain or lose the target, and
   * the numbers of credentials that would end.
   *
   * @throws DomainError admin_required, not_found
   */
  preview(
    admin: Admin,
    ref: TargetRef,
    change: AskedChange,
    seen: { readonly mayName: true },
  ): Promise<RulePreview>;
  /**
   * Returns the preview of a change. If `mayName` is false and the preview could show who is in a
   * group, the result only states that it is hidden.
   */
  preview(
    admin: Admin,
    ref: TargetRef,
    change: AskedChange,
    seen: Seen,
  ): Promise<RulePreview | HiddenPreview>;
  preview(
    admin: Admin,
    ref: TargetRef,
    change: AskedChange,
    { mayName }: Seen,
  ): Promise<RulePreview | HiddenPreview> {
    return this.#read(admin, async (tx) => {
      const found = await this.#found(tx, admin, ref);
      if (change === 'deleted') assertMade(found);
      else await this.#holdNamed(tx, admin, change);
      const { endings } = this;
      return previewChange(tx, admin.orgId, found, change, { mayName, endings });
    });
  }

  /**
   * Reads for an export which people may use which targets, in batches of lines. The first batch is
   * read before the function returns, so that an error can still become the status code of the
   * response.
   *
   * @throws DomainError admin_required
   */
  async export(admin: Admin): Promise<AsyncGenerator<readonly ReachLine[]>> {
    const lines = linesOfReach(admin.orgId, (work) =>
      this.#read(admin, work, PATIENCE_DURING_RESPONSE),
    );
    const first = await lines.next();
    return (async function* () {
      if (first.done !== true) yield first.value;
      yield* lines;
    })();
  }

  /**
   * Finds groups whose names begin with a text, as suggestions for a form.
   *
   * @throws DomainError admin_required
   */
  findGroups(admin: Admin, text: string): Promise<FoundGroup[]> {
    return this.#read(admin, (tx) => findGroups(tx, admin.orgId, text, MOST_GROUPS));
  }

  /**
   * Finds the people and groups that an admin named in a form.
   *
   * @throws DomainError admin_required
   */
  findNamed(admin: Admin, addresses: readonly string[], names: readonly string[]): Promise<Named> {
    return this.#read(admin, (tx) => findNamed(tx, admin.orgId, addresses, names));
  }

  /**
   * Adds a role of AWS or a group of hosts. At first its rule admits everyone in the organization.
   *
   * @throws DomainError admin_required, limit_reached, uniqueness
   */
  create(act: RuleAct, made: NewTarget): Promise<Target> {
    const { admin } = act;
    return this.#change(act, async (tx) => {
      await this.members.holdAdmin(tx, admin);
      await this.organizations.lockSettings(tx, admin.orgId);
      if ((await countMade(tx, admin.orgId)) >= MOST_TARGETS) throw tooManyTargets();
      const id = await insertTarget(tx, admin.orgId, made);
      if (id === undefined) throw taken(made.kind);
      const after = await this.#found(tx, admin, { kind: made.kind, id });
      await this.#record(tx, act, { change: 'created', after });
      return after;
    });
  }

  /**
   * Changes an AWS role or a group of hosts. A group of hosts gives principals: names in SSH
   * certificates that open accounts on hosts. If a group loses a principal by the change, the
   * certificates with this principal are revoked.
   *
   * @throws DomainError admin_required, not_found, uniqueness, and the errors of `act.check`
   */
  change(act: RuleAct, ref: TargetRef & { kind: MadeKind }, change: TargetChange): Promise<Target> {
    return this.#change(act, async (tx) => {
      const before = await this.#locked(tx, act, ref);
      const wanted = { ...before, ...change };
      if (sameValues(before, wanted)) return before;
      await changeTarget(tx, before, wanted).catch((error: unknown) => {
        throw violatedConstraint(error)?.startsWith('access_targets_') ? taken(ref.kind) : error;
      });
      const after = await this.#found(tx, act.admin, ref);
      await this.#record(tx, act, { change: 'changed', before, after });
      return after;
    });
  }

  /**
   * Deletes an AWS role or a group of hosts with its assignments.
   *
   * @throws DomainError admin_required, not_found, and the errors of `act.check`
   */
  remove(act: RuleAct, ref: TargetRef & { kind: MadeKind }): Promise<Target> {
    return this.#change(act, async (tx) => {
      const after = await this.#locked(tx, act, ref);
      await deleteTarget(tx, after);
      await this.#record(tx, act, { change: 'deleted', after });
      return after;
    });
  }

  /**
   * Replaces the access rule of a target with all of its assignments.
   *
   * @throws DomainError admin_required, not_found also for a person or a group of another
   *   organization, and the errors of `act.check`
   */
  putRule(act: RuleAct, ref: TargetRef, rule: WantedRule): Promise<TargetDetails> {
    return this.#change(act, async (tx) => {
      const before = await this.#locked(tx, act, ref, rule);
      // The new rule is set before the assignments change, because the database trigger on removed
      // assignments reads it. If the target then admits everyone, no access ends.
      await changeRule(tx, before, rule);
      const changed = await replaceAssignments(tx, before, rule.users, rule.groups);
      const after = await this.#found(tx, act.admin, ref);
      const isChanged =
        !isSameRule(before, rule) || changed.assigned.length + changed.removed.length > 0;
      if (isChanged) await this.#record(tx, act, { change: 'rule', before, after, ...changed });
      return { target: after, assignments: await listAssignments(tx, after) };
    });
  }

  /**
   * Runs a change of a rule in a transaction. The credentials that people lose by the change then
   * end before the response is sent. If there are many, the worker of {@link AccessEndings} ends
   * the rest.
   */
  async #change<Done>(
    { admin, origin }: RuleAct,
    change: (tx: EntityManager) => Promise<Done>,
  ): Promise<Done> {
    const { done, queued } = await this.work.transact(admin.orgId, async (tx) => {
      const changed = await change(tx);
      const by = { actorId: admin.id, requestId: origin.requestId };
      return { done: changed, queued: await this.endings.label(tx, by) };
    });
    if (queued) await this.endings.settle(queued);
    return done;
  }

  /**
   * Locks the rows that a change of a rule needs, in the one order of locks: people, groups,
   * organization, target. For an AWS role the organization is locked before the target, because a
   * trigger on the change of a role updates the organization.
   */
  async #locked(
    tx: EntityManager,
    { admin, check }: RuleAct,
    ref: TargetRef,
    named: Pick<WantedRule, 'users' | 'groups'> = { users: [], groups: [] },
  ): Promise<Target> {
    const { orgId } = admin;
    await this.#holdNamed(tx, admin, named);
    await this.members.holdAdmin(tx, admin);
    if (ref.kind === 'aws_role') await this.organizations.lockSettings(tx, orgId);
    const locked = isTargetId(ref) && (await lockTarget(tx, orgId, ref));
    if (!locked) throw noTarget();
    check?.(locked);
    return locked;
  }

  /**
   * Locks the people and groups that a rule names, so that they stay in the organization until the
   * transaction ends.
   *
   * @throws DomainError not_found for a person or a group that the organization does not have
   */
  async #holdNamed(
    tx: EntityManager,
    { id, orgId }: Admin,
    { users, groups }: Pick<WantedRule, 'users' | 'groups'>,
  ): Promise<void> {
    if (!(await holdPeople(tx, orgId, [id, ...users]))) throw noMember();
    if (!(await holdGroups(tx, orgId, groups))) throw noGroup();
  }

  async #found(
    tx: EntityManager,
    { orgId }: Pick<Admin, 'orgId'>,
    ref: TargetRef,
  ): Promise<Target> {
    const found = isTargetId(ref) && (await findTarget(tx, orgId, ref));
    if (!found) throw noTarget();
    return found;
  }

  async #record(tx: EntityManager, act: RuleAct, change: RuleChange): Promise<void> {
    for (const event of eventsOf(act, change)) await this.audit.record(tx, event);
  }

  /**
   * Runs a read for an admin, after a check that the user is still an admin. The read counts toward
   * the limit on the database connections and time of one organization.
   *
   * @throws DomainError admin_required
   */
  #read<Found>(
    reader: Reader,
    work: (tx: EntityManager) => Promise<Found>,
    patience?: number,
  ): Promise<Found> {
    const read = async (tx: EntityManager) => {
      await checkReader(tx, this.members, reader);
      return work(tx);
    };
    return this.work.costly(reader.orgId, read, patience);
  }
}

function pageOf<Row extends TargetRow>(rows: readonly Row[], limit: number) {
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? shown.at(-1) : undefined;
  return { shown, next: last ? writeTargetCursor(placeOf(last)) : null };
}

function sameValues(one: Target, other: Target): boolean {
  const names = ['name', 'roleArn', 'region', 'hosts', 'logins'] as const;
  return names.every((name) => JSON.stringify(one[name]) === JSON.stringify(other[name]));
}

/**
 * Refuses to delete an application or a GitHub installation as a target. Such a target ends only
 * together with its application or installation.
 *
 * @throws DomainError not_found
 */
function assertMade({ kind }: Target): void {
  if (kind !== 'aws_role' && kind !== 'host_group') throw noTarget();
}

function noTarget(): DomainError {
  return new DomainError('not_found', 'Your organization has no such target.');
}

function noMember(): DomainError {
  return new DomainError('not_found', 'Your organization has no such member.');
}

function noGroup(): DomainError {
  return new DomainError('not_found', 'Your organization has no such group.');
}

function taken(kind: MadeKind): DomainError {
  const detail =
    kind === 'aws_role'
      ? 'Your organization has this role already.'
      : 'Your organization has a group of hosts of this name already. Choose another name.';
  return new DomainError('uniqueness', detail);
}

function tooManyTargets(): DomainError {
  const detail = `An organization has at most ${MOST_TARGETS} roles and groups of hosts. Delete one first.`;
  return new DomainError('limit_reached', detail);
}
