import { Body, Controller, Delete, Get, HttpCode, Param, Post } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { SavedQuestions } from '#domain/admin/audit-search/saved-questions.service.js';
import { adminOf } from '#domain/directory/members.service.js';
import { ADMIN_READS, ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Route } from '#platform/http/routing/route.js';
import {
  QUESTION_ID,
  QUESTION_JSON,
  questionJson,
  questionOf,
  QUESTIONS_JSON,
  SAVE_QUESTION,
  type QuestionJson,
  type SaveQuestion,
} from './audit-questions.schemas.js';

/**
 * `/api/v1/org/audit-questions`: the searches of the audit log that the admins of an organization
 * have saved as questions, each with a name and the filters.
 */
@Controller('api/v1/org/audit-questions')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class AuditQuestionsController {
  constructor(private readonly savedQuestions: SavedQuestions) {}

  @Get()
  @Route({
    auth: ADMIN_READS,
    operation: 'listAuditQuestions',
    summary: 'Lists the saved questions to the audit log',
    answers: { 200: QUESTIONS_JSON },
  })
  async list(
    @Caller() session: VerifiedSession,
  ): Promise<{ readonly questions: readonly QuestionJson[] }> {
    const questions = await this.savedQuestions.list(adminOf(session));
    return { questions: questions.map(questionJson) };
  }

  @Post()
  @Route({
    operation: 'saveAuditQuestion',
    summary: 'Saves a question to the audit log',
    answers: { 201: QUESTION_JSON },
    refusals: ['limit_reached'],
  })
  @HttpCode(201)
  async save(
    @Caller() session: VerifiedSession,
    @Body({ schema: SAVE_QUESTION }) body: SaveQuestion,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<QuestionJson> {
    const saved = await this.savedQuestions.save(adminOf(session), questionOf(body), origin);
    return questionJson(saved);
  }

  @Delete(':id')
  @Route({
    operation: 'removeAuditQuestion',
    summary: 'Removes a saved question',
    answers: { 204: null },
    refusals: ['not_found'],
  })
  @HttpCode(204)
  async remove(
    @Caller() session: VerifiedSession,
    @Param({ schema: QUESTION_ID }) { id }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.savedQuestions.remove(adminOf(session), id, origin);
  }
}
