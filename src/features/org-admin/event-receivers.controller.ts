import {
  Body,
  Controller,
  Delete,
  Get,
  Headers,
  HttpCode,
  Param,
  Patch,
  Post,
  Res,
} from '@nestjs/common';
import type { Response } from 'express';
import type { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { adminOf } from '#domain/directory/members.service.js';
import { EventReceivers, seenSettings } from '#domain/oauth/event-receivers/event-receivers.js';
import { ADMIN_READS, ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { assertMatches, IF_MATCH, jsonTag } from '#platform/http/request/entity-tag.js';
import { Route } from '#platform/http/routing/route.js';
import {
  CHANGE_RECEIVER,
  CREATE_RECEIVER,
  MADE_RECEIVER_JSON,
  madeReceiverJson,
  RECEIVER_ID,
  RECEIVER_JSON,
  RECEIVER_LETTER_ID,
  RECEIVER_STATE_JSON,
  receiverJson,
  RECEIVERS_JSON,
  receiverStateJson,
  ROTATE_SECRET,
  type ChangeReceiver,
  type CreateReceiver,
  type ReceiverJson,
  type RotateSecret,
} from './event-receivers.schemas.js';

/**
 * `/api/v1/org/event-receivers`: the receivers of the audit log of the organization. Only the
 * answers to the creation of a receiver, and to the rotation of its secret, contain the secret.
 */
@Controller('api/v1/org/event-receivers')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class EventReceiversController {
  constructor(private readonly eventReceivers: EventReceivers) {}

  @Get()
  @Route({
    auth: ADMIN_READS,
    operation: 'listEventReceivers',
    summary: 'Lists the event receivers',
    answers: { 200: RECEIVERS_JSON },
    refusals: ['admin_required'],
  })
  async list(@Caller() session: VerifiedSession): Promise<z.output<typeof RECEIVERS_JSON>> {
    const receivers = await this.eventReceivers.list(adminOf(session));
    return { receivers: receivers.map(receiverJson) };
  }

  @Post()
  @Route({
    operation: 'createEventReceiver',
    summary: 'Creates an event receiver',
    answers: { 201: MADE_RECEIVER_JSON },
    refusals: ['admin_required', 'feed_restarted', 'limit_reached'],
  })
  @HttpCode(201)
  async create(
    @Caller() session: VerifiedSession,
    @Body({ schema: CREATE_RECEIVER }) body: CreateReceiver,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<z.output<typeof MADE_RECEIVER_JSON>> {
    return madeReceiverJson(await this.eventReceivers.create(adminOf(session), body, origin));
  }

  @Get(':id')
  @Route({
    auth: ADMIN_READS,
    operation: 'getEventReceiver',
    summary: 'Shows an event receiver with its figures and dead letters',
    answers: { 200: RECEIVER_STATE_JSON },
    refusals: ['admin_required', 'not_found'],
  })
  async show(
    @Caller() session: VerifiedSession,
    @Param({ schema: RECEIVER_ID }) { id }: { id: string },
    @Res({ passthrough: true }) response: Response,
  ): Promise<z.output<typeof RECEIVER_STATE_JSON>> {
    const state = await this.eventReceivers.show(adminOf(session), id);
    response.setHeader('ETag', jsonTag(seenSettings(state.receiver)));
    return receiverStateJson(state);
  }

  @Patch(':id')
  @Route({
    operation: 'changeEventReceiver',
    summary: 'Changes an event receiver, or pauses it',
    answers: { 200: RECEIVER_JSON },
    refusals: ['admin_required', 'not_found', 'precondition_failed'],
    asks: { headers: IF_MATCH },
  })
  async change(
    @Caller() session: VerifiedSession,
    @Param({ schema: RECEIVER_ID }) { id }: { id: string },
    @Body({ schema: CHANGE_RECEIVER }) body: ChangeReceiver,
    @ClientOrigin() origin: AuditOrigin,
    @Headers('if-match') ifMatch: string | undefined,
    @Res({ passthrough: true }) response: Response,
  ): Promise<ReceiverJson> {
    const admin = adminOf(session);
    const receiver = await this.eventReceivers.change(admin, id, body, origin, (current) =>
      assertMatches(ifMatch, jsonTag(current)),
    );
    response.setHeader('ETag', jsonTag(seenSettings(receiver)));
    return receiverJson(receiver);
  }

  @Delete(':id')
  @Route({
    operation: 'removeEventReceiver',
    summary: 'Removes an event receiver with its dead letters',
    answers: { 204: null },
    refusals: ['admin_required', 'not_found'],
  })
  @HttpCode(204)
  async remove(
    @Caller() session: VerifiedSession,
    @Param({ schema: RECEIVER_ID }) { id }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.eventReceivers.remove(adminOf(session), id, origin);
  }

  @Post(':id/rotate-secret')
  @Route({
    operation: 'rotateEventReceiverSecret',
    summary: 'Replaces the secret of a webhook',
    answers: { 201: MADE_RECEIVER_JSON },
    refusals: ['admin_required', 'not_found'],
  })
  @HttpCode(201)
  async rotateSecret(
    @Caller() session: VerifiedSession,
    @Param({ schema: RECEIVER_ID }) { id }: { id: string },
    @Body({ schema: ROTATE_SECRET }) { overlap_hours: hours }: RotateSecret,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<z.output<typeof MADE_RECEIVER_JSON>> {
    const admin = adminOf(session);
    return madeReceiverJson(await this.eventReceivers.rotateSecret(admin, id, hours, origin));
  }

  @Post(':id/test')
  @Route({
    operation: 'testEventReceiver',
    summary: 'Sends a test event to a receiver, in its place in the log',
    answers: { 204: null },
    refusals: ['admin_required', 'not_found', 'rate_limited'],
  })
  @HttpCode(204)
  async test(
    @Caller() session: VerifiedSession,
    @Param({ schema: RECEIVER_ID }) { id }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.eventReceivers.test(adminOf(session), id, origin);
  }

  @Post(':id/dead-letters/:letter_id/repeat')
  @Route({
    operation: 'repeatDeadLetter',
    summary: 'Sends a dead letter of an event receiver again',
    answers: { 204: null },
    refusals: ['admin_required', 'not_found'],
  })
  @HttpCode(204)
  async repeat(
    @Caller() session: VerifiedSession,
    @Param({ schema: RECEIVER_LETTER_ID }) of: z.output<typeof RECEIVER_LETTER_ID>,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.eventReceivers.repeat(adminOf(session), of.id, of.letter_id, origin);
  }

  @Delete(':id/dead-letters/:letter_id')
  @Route({
    operation: 'dropDeadLetter',
    summary: 'Drops a dead letter of an event receiver',
    answers: { 204: null },
    refusals: ['admin_required', 'not_found'],
  })
  @HttpCode(204)
  async drop(
    @Caller() session: VerifiedSession,
    @Param({ schema: RECEIVER_LETTER_ID }) of: z.output<typeof RECEIVER_LETTER_ID>,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.eventReceivers.drop(adminOf(session), of.id, of.letter_id, origin);
  }
}
