import { Body, Controller, HttpCode, Param, Post } from '@nestjs/common';
import type { z } from 'zod';
import { MemberTies } from '#domain/directory/member-ties.service.js';
import { ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import { IF_MATCH } from '#platform/http/request/entity-tag.js';
import { Route } from '#platform/http/routing/route.js';
import { Act, type ActOn } from './member-act.js';
import {
  GIVEN_ADDRESS_JSON,
  givenAddressJson,
  PARTED_JSON,
  partedJson,
  READMIT_BODY,
  READMITTED_JSON,
  readmittedJson,
  type GivenAddressJson,
  type PartedJson,
  type ReadmittedJson,
} from './member-ties.schemas.js';
import { MEMBER_ID } from './members.schemas.js';

/**
 * Lets admins readmit removed people, and decide about members who share an e-mail address with a
 * SCIM record. With `If-Match`, a change is refused if the member has changed meanwhile.
 */
@Controller('api/v1/org/members')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class MemberTiesController {
  constructor(private readonly ties: MemberTies) {}

  @Post('readmit')
  @Route({
    operation: 'readmitMember',
    summary: 'Lets a removed person in again, by the e-mail address',
    answers: { 200: READMITTED_JSON },
    refusals: ['not_found'],
  })
  @HttpCode(200)
  async readmit(
    @Body({ schema: READMIT_BODY }) { email }: z.output<typeof READMIT_BODY>,
    @Act() act: ActOn,
  ): Promise<ReadmittedJson> {
    const { admin, origin } = act('');
    return readmittedJson(await this.ties.readmit({ admin, origin, email }));
  }

  @Post(':id/part')
  @Route({
    operation: 'partMember',
    summary: 'Parts a member from the record of another person',
    answers: { 200: PARTED_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed', 'nothing_to_part'],
    asks: { headers: IF_MATCH },
  })
  @HttpCode(200)
  async part(
    @Param({ schema: MEMBER_ID }) { id }: { id: string },
    @Act() act: ActOn,
  ): Promise<PartedJson> {
    return partedJson(await this.ties.part(act(id)));
  }

  @Post(':id/give-address')
  @Route({
    operation: 'giveAddress',
    summary: 'Gives a linked record its address, and ends the access of the member who had it',
    answers: { 200: GIVEN_ADDRESS_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed', 'nothing_withheld'],
    asks: { headers: IF_MATCH },
  })
  @HttpCode(200)
  async giveAddress(
    @Param({ schema: MEMBER_ID }) { id }: { id: string },
    @Act() act: ActOn,
  ): Promise<GivenAddressJson> {
    return givenAddressJson(await this.ties.giveAddress(act(id)));
  }
}
