import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DomainError } from '#platform/errors/domain-error.js';
import { MembersRepository } from './members.repository.js';

/** An admin who acts on their organization. */
export interface Admin {
  readonly id: string;
  readonly orgId: string;
}

/**
 * The admin of a request, judged once more in the transaction of the act: whoever was demoted between the request's
 * admission and its act does nothing any more.
 */
@Injectable()
export class ActingAdmin {
  constructor(private readonly members: MembersRepository) {}

  /**
   * Keeps an admin one until the transaction ends. The first lock of the transaction: people come before all else.
   *
   * @throws DomainError admin_required
   */
  async hold(tx: EntityManager, { id, orgId }: Admin): Promise<void> {
    if (!(await this.members.lockAdmin(tx, orgId, id))) throw adminRequired();
  }
}

/** The answer to whoever is no active admin of the organization. */
export function adminRequired(): DomainError {
  return new DomainError('admin_required', 'This is for the admins of an organization.');
}
