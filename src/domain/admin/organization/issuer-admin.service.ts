import { Injectable } from '@nestjs/common';
import type { AuditType } from '#domain/audit/audit-event.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { Members } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import { IssuerKeys } from '#domain/organizations/issuers/issuer-keys.service.js';
import { isReservedLabel } from '#domain/organizations/issuers/issuer-label.js';
import {
  claimLabel,
  countOtherLabels,
  findIssuer,
  insertIssuerKey,
  insertNextIssuerKey,
  isForeignLabel,
  releaseLabel,
  setIssuerActive,
  withdrawIssuerKeys,
  type NewIssuerKey,
  type OrganizationIssuer,
} from '#domain/organizations/issuers/organization-issuers.repository.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * The most labels (parts of host names) that an organization can ever claim. The number is small
 * because a label stays reserved for its organization forever, even after its release.
 */
const MOST_LABELS = 3;

/**
 * The token issuer of an organization, as its admins read and change it. Each change locks the
 * admin and then the organization, so that changes of one organization happen one after another. A
 * key is generated before the transaction, because the generation takes a second and no lock may be
 * held for so long.
 */
@Injectable()
export class IssuerAdmin {
  constructor(
    private readonly dataSource: DataSource,
    private readonly members: Members,
    private readonly organizations: OrganizationsRepository,
    private readonly issuerKeys: IssuerKeys,
    private readonly audit: AuditLog,
  ) {}

  /** True if the operator has configured the key that encrypts the private keys of issuers. */
  get isConfigured(): boolean {
    try {
      this.issuerKeys.assertConfigured();
      return true;
    } catch (error) {
      if (error instanceof DomainError && error.code === 'issuers_not_configured') return false;
      throw error;
    }
  }

  /** Returns the token issuer of the organization; undefined if it has none. */
  show({ orgId }: Admin): Promise<OrganizationIssuer | undefined> {
    return findIssuer(this.dataSource.manager, orgId);
  }

  /**
   * Claims a label for the organization and makes its first signing key. The error for a taken
   * label does not tell which organization has it.
   *
   * @throws DomainError issuers_not_configured, label_reserved, label_taken, issuer_exists,
   *   limit_reached, admin_required
   */
  async claim(
    admin: Admin,
    { label, active }: { readonly label: string; readonly active: boolean },
    origin: AuditOrigin,
  ): Promise<OrganizationIssuer> {
    this.issuerKeys.assertConfigured();
    if (isReservedLabel(label)) {
      throw new DomainError('label_reserved', 'This label is reserved. Choose another one.');
    }
    await this.#checkClaim(this.dataSource.manager, admin, label);
    const key = await this.issuerKeys.newKey(admin.orgId, label);
    return this.#change(admin, async (tx) => {
      await this.#checkClaim(tx, admin, label);
      if (!(await claimLabel(tx, admin.orgId, label, active))) throw labelTaken();
      await insertIssuerKey(tx, key);
      const { kid } = key;
      await this.#record(tx, 'org_issuer_claimed', admin, origin, { label, kid, active });
    });
  }

  /**
   * Sets if the AWS tokens of the organization come from its own issuer, beginning with the next
   * token.
   *
   * @throws DomainError issuers_not_configured, not_found, admin_required
   */
  setActive(admin: Admin, active: boolean, origin: AuditOrigin): Promise<OrganizationIssuer> {
    if (active) this.issuerKeys.assertConfigured();
    return this.#change(admin, async (tx) => {
      const { label } = await this.#found(tx, admin);
      if (!(await setIssuerActive(tx, admin.orgId, active))) return;
      const type = active ? 'org_issuer_activated' : 'org_issuer_deactivated';
      await this.#record(tx, type, admin, origin, { label });
    });
  }

  /**
   * Releases the label of the organization. From the commit on, the service does not serve its host
   * name and its signing keys any more. AWS tokens then come from the service's own issuer again.
   *
   * @throws DomainError not_found, admin_required
   */
  async release(admin: Admin, origin: AuditOrigin): Promise<void> {
    await this.#locked(admin, async (tx) => {
      const { label } = await this.#found(tx, admin);
      await releaseLabel(tx, admin.orgId, label);
      await this.#record(tx, 'org_issuer_released', admin, origin, { label });
    });
  }

  /**
   * Replaces the signing key of the issuer. A planned rotation publishes the next key first. In an
   * emergency every key is withdrawn, and a new key signs at once.
   *
   * @throws DomainError issuers_not_configured, not_found, rotation_pending, admin_required
   */
  async rotate(admin: Admin, emergency: boolean, origin: AuditOrigin): Promise<OrganizationIssuer> {
    this.issuerKeys.assertConfigured();
    const { label } = await this.#found(this.dataSource.manager, admin);
    const key = await this.issuerKeys.newKey(admin.orgId, label);
    return this.#change(admin, async (tx) => {
      const current = await this.#found(tx, admin);
      // The label differs if the organization released its label and claimed another one while the
      // key was generated.
      if (current.label !== label) throw noIssuer();
      const withdrawn = await (emergency ? this.#replace(tx, key) : this.#addNext(tx, key));
      const details = { label, kid: key.kid, emergency, withdrawn };
      await this.#record(tx, 'org_issuer_key_rotated', admin, origin, details);
    });
  }

  /**
   * Withdraws every signing key and adds one that signs at once. Returns the ids of the withdrawn
   * keys.
   */
  async #replace(tx: EntityManager, key: NewIssuerKey): Promise<string[]> {
    const withdrawn = await withdrawIssuerKeys(tx, key.orgId, key.label);
    await insertIssuerKey(tx, key);
    return withdrawn;
  }

  async #addNext(tx: EntityManager, key: NewIssuerKey): Promise<string[]> {
    if (await insertNextIssuerKey(tx, key)) return [];
    throw new DomainError(
      'rotation_pending',
      'The next key is published already and does not sign yet. Wait for it, or rotate in an emergency.',
    );
  }

  /**
   * Checks that the organization may claim a label. The check runs before a key is generated, so
   * that no key is made in vain, and again under the lock of the organization.
   *
   * @throws DomainError `issuer_exists`, `label_taken` or `limit_reached`
   */
  async #checkClaim(tx: EntityManager, { orgId }: Admin, label: string): Promise<void> {
    if (await findIssuer(tx, orgId)) {
      throw new DomainError('issuer_exists', 'Your organization has an issuer. Release it first.');
    }
    if (await isForeignLabel(tx, orgId, label)) throw labelTaken();
    if ((await countOtherLabels(tx, orgId, label)) < MOST_LABELS) return;
    throw new DomainError(
      'limit_reached',
      `An organization has at most ${MOST_LABELS} labels, released ones included. Claim one of them again.`,
    );
  }

  async #found(tx: EntityManager, { orgId }: Admin): Promise<OrganizationIssuer> {
    const issuer = await findIssuer(tx, orgId);
    if (!issuer) throw noIssuer();
    return issuer;
  }

  /**
   * Runs a change of the issuer under the locks of admin and organization, and returns the issuer
   * after it.
   */
  #change(admin: Admin, change: (tx: EntityManager) => Promise<void>): Promise<OrganizationIssuer> {
    return this.#locked(admin, async (tx) => {
      await change(tx);
      return this.#found(tx, admin);
    });
  }

  #locked<T>(admin: Admin, act: (tx: EntityManager) => Promise<T>): Promise<T> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      await this.members.holdAdmin(tx, admin);
      await this.organizations.lockSettings(tx, admin.orgId);
      return act(tx);
    });
  }

  #record(
    tx: EntityManager,
    type: AuditType & `org_issuer_${string}`,
    { id: actorId, orgId }: Admin,
    origin: AuditOrigin,
    details: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    return this.audit.record(tx, { type, actorId, subjectId: null, orgId, origin, details });
  }
}

function labelTaken(): DomainError {
  return new DomainError('label_taken', 'This label is taken. Choose another one.');
}

function noIssuer(): DomainError {
  return new DomainError('not_found', 'Your organization has no issuer.');
}
