import { Injectable } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { Members } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { isUuid } from '#platform/text/single-line.js';
import type { NamedQuestion } from './ready-questions.js';
import {
  deleteQuestion,
  insertQuestion,
  listQuestions,
  lockQuestions,
  type SavedQuestion,
} from './saved-questions.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** The most searches of the audit log that an organization can save. */
export const MOST_QUESTIONS = 30;

/** The searches of the audit log that the admins of an organization have saved under names. */
@Injectable()
export class SavedQuestions {
  constructor(
    private readonly dataSource: DataSource,
    private readonly members: Members,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Lists the saved searches, the oldest first.
   *
   * @throws DomainError admin_required
   */
  async list(admin: Admin): Promise<SavedQuestion[]> {
    await this.members.checkAdmin(this.dataSource.manager, admin);
    return listQuestions(this.dataSource.manager, admin.orgId);
  }

  /**
   * Saves a search under a name.
   *
   * @throws DomainError admin_required, limit_reached
   */
  async save(
    admin: Admin,
    { name, question }: NamedQuestion,
    origin: AuditOrigin,
  ): Promise<SavedQuestion> {
    const { id: createdBy, orgId } = admin;
    return withTransactionRetry(this.dataSource, async (tx) => {
      await this.members.holdAdmin(tx, admin);
      if ((await lockQuestions(tx, orgId)) >= MOST_QUESTIONS) {
        const detail = `An organization keeps ${MOST_QUESTIONS} questions. Remove one first.`;
        throw new DomainError('limit_reached', detail);
      }
      const id = newUuid();
      const saved = await insertQuestion(tx, { id, orgId, name, filters: question, createdBy });
      await this.#record(tx, 'audit_question_saved', admin, origin, { question_id: id, name });
      return saved;
    });
  }

  /**
   * Deletes a saved search. Of several requests that delete it at the same time, one succeeds.
   * @throws DomainError admin_required, not_found
   */
  async remove(admin: Admin, id: string, origin: AuditOrigin): Promise<void> {
    await withTransactionRetry(this.dataSource, async (tx) => {
      await this.members.holdAdmin(tx, admin);
      const name = isUuid(id) ? await deleteQuestion(tx, admin.orgId, id) : undefined;
      if (name === undefined) {
        throw new DomainError('not_found', 'Your organization keeps no such question.');
      }
      const details = { question_id: id.toLowerCase(), name };
      await this.#record(tx, 'audit_question_removed', admin, origin, details);
    });
  }

  #record(
    tx: Parameters<AuditLog['record']>[0],
    type: 'audit_question_saved' | 'audit_question_removed',
    { id: actorId, orgId }: Admin,
    origin: AuditOrigin,
    details: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    return this.audit.record(tx, { type, actorId, subjectId: null, orgId, origin, details });
  }
}
