import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DomainError } from '#platform/errors/domain-error.js';
import { MembersRepository } from './members.repository.js';

/** An admin who acts on their organization. */
export interface Admin {
  readonly id: string;
  readonly orgId: string;
  /** The hardware-verified session in which they act. */
  readonly sessionId: string;
}

/**
 * The admin of a request, judged once more when the request acts or reads on: an admin who was demoted since the request was
 * admitted, or whose session ended, does nothing any more. The predicate is that of the access rule, `is_acting_admin`.
 */
@Injectable()
export class ActingAdmin {
  constructor(private readonly members: MembersRepository) {}

  /**
   * Keeps an admin one until the transaction ends. The first lock of the transaction: people come before all else.
   *
   * @throws DomainError admin_required
   */
  async hold(tx: EntityManager, admin: Admin): Promise<void> {
    if (!(await this.holdIfStill(tx, admin))) throw adminRequired();
  }

  /** The same, where the act is open to others too: false for a user who is no admin any more. */
  holdIfStill(tx: EntityManager, admin: Admin): Promise<boolean> {
    return this.members.lockAdmin(tx, admin);
  }

  /**
   * Judges an admin who reads on, and locks nothing.
   *
   * @throws DomainError admin_required
   */
  async check(tx: EntityManager, admin: Admin): Promise<void> {
    if (!(await this.members.isActingAdmin(tx, admin))) throw adminRequired();
  }
}

/** The answer to a user who is no acting admin of the organization. */
export function adminRequired(): DomainError {
  return new DomainError('admin_required', 'This is for the admins of an organization.');
}
