import { Controller, Delete, Get, HttpCode, Param, Post } from '@nestjs/common';
import { adminOf } from '#domain/directory/members.service.js';
import { EnrollmentPasses } from '#domain/keys/enrollment-passes/enrollment-passes.service.js';
import { ADMIN_READS, ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { IF_MATCH } from '#platform/http/request/entity-tag.js';
import { Route } from '#platform/http/routing/route.js';
import { Act, type ActOn } from './member-act.js';
import {
  NEW_PASS_JSON,
  newPassJson,
  PASSES_JSON,
  passesJson,
  type NewPassJson,
  type PassesJson,
} from './enrollment-passes.schemas.js';
import { MEMBER_ID } from './members.schemas.js';

/**
 * `/api/v1/org/members/{id}/enrollment-passes`: makes and withdraws the re-enrollment pass of a
 * member. The pass is a secret for one use, with which a member who lost a key enrolls another key.
 * A member has at most one pass. `If-Match` names the state of the member, as for other changes of
 * members.
 */
@Controller('api/v1/org/members/:id/enrollment-passes')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class EnrollmentPassesController {
  constructor(private readonly passes: EnrollmentPasses) {}

  /**
   * Ends the credentials of the member and returns a new pass. An earlier pass of the member
   * becomes invalid.
   */
  @Post()
  @Route({
    operation: 'giveEnrollmentPass',
    summary: 'Gives a member a re-enrollment pass, and revokes the credentials of the member',
    answers: { 201: NEW_PASS_JSON },
    refusals: ['not_found', 'own_account', 'account_inactive', 'precondition_failed'],
    asks: { headers: IF_MATCH },
  })
  @HttpCode(201)
  async give(
    @Act() act: ActOn,
    @Param({ schema: MEMBER_ID }) { id }: { id: string },
  ): Promise<NewPassJson> {
    return newPassJson(await this.passes.give(act(id)));
  }

  @Get()
  @Route({
    auth: ADMIN_READS,
    operation: 'getEnrollmentPass',
    summary: 'Shows if a re-enrollment pass is demanded of a member',
    answers: { 200: PASSES_JSON },
    refusals: ['not_found'],
  })
  async list(
    @Caller() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id }: { id: string },
  ): Promise<PassesJson> {
    return passesJson(await this.passes.ofMember(adminOf(session), id));
  }

  @Delete()
  @Route({
    operation: 'withdrawEnrollmentPass',
    summary: 'Withdraws the re-enrollment pass of a member',
    answers: { 204: null },
    refusals: ['not_found', 'own_account', 'precondition_failed'],
    asks: { headers: IF_MATCH },
  })
  @HttpCode(204)
  async withdraw(
    @Act() act: ActOn,
    @Param({ schema: MEMBER_ID }) { id }: { id: string },
  ): Promise<void> {
    await this.passes.withdraw(act(id));
  }

  @Delete('demand')
  @Route({
    operation: 'liftEnrollmentPassDemand',
    summary:
      'Lifts the demand for a re-enrollment pass: the sign-in of the member alone enrolls a key again',
    answers: { 204: null },
    refusals: ['not_found', 'own_account', 'precondition_failed'],
    asks: { headers: IF_MATCH },
  })
  @HttpCode(204)
  async lift(
    @Act() act: ActOn,
    @Param({ schema: MEMBER_ID }) { id }: { id: string },
  ): Promise<void> {
    await this.passes.lift(act(id));
  }
}
