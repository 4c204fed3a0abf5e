import { Body, Controller, Delete, Get, HttpCode, Param, Post, Put } from '@nestjs/common';
import { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import {
  ApplicationNotices,
  type ApplicationSignalsState,
} from '#domain/oauth/applications/application-notices.service.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Route } from '#platform/http/routing/route.js';
import { APPLICATION_READS, APPLICATION_WRITES, managerOf } from './application-manager.js';
import { ALLOW_SIGNALS, APPLICATION_ID, SIGNAL_ID } from './applications.schemas.js';

/** The JSON of an application's stream of signals (security events about its users). */
const SIGNALS_JSON = z
  .object({
    allowed: z.boolean().meta({ description: 'True: an admin allowed it to have a stream.' }),
    subject_format: z
      .enum(['iss_sub', 'email'])
      .nullable()
      .describe('The format in which events name a person (RFC 9493); null if it is not allowed.'),
    stream: z
      .object({
        stream_id: z.string().describe('The id of the stream.'),
        method: z.enum(['push', 'poll']).describe('`push` (RFC 8935) or `poll` (RFC 8936).'),
        endpoint_url: z
          .string()
          .nullable()
          .describe('The URL of the receiver, without its query; null for `poll`.'),
        status: z.enum(['enabled', 'paused', 'disabled']).describe('The state of the stream.'),
        events: z.array(z.string()).readonly().describe('The types of events that it gets.'),
      })
      .nullable()
      .describe('The stream; null until the application has made it.'),
    waiting: z.int().describe('The signals that wait for delivery.'),
    oldest: z.iso.datetime().nullable().describe('The time of the signal that waited longest.'),
    dead_letters: z
      .array(
        z.object({
          id: z.string().describe('The id of the signal.'),
          event: z.string().describe('The type of its event.'),
          sub: z.string().nullable().describe('The id of the user whom it is about.'),
          created_at: z.iso.datetime().describe('The time of the event.'),
          dead_at: z.iso.datetime().describe('The time of the last attempt.'),
          result: z.string().nullable().describe('The result of the last attempt.'),
        }),
      )
      .readonly()
      .describe('The signals that could not be delivered.'),
  })
  .meta({ id: 'ApplicationSignals', description: 'The stream of signals of an application.' });
type SignalsJson = z.output<typeof SIGNALS_JSON>;

/**
 * `/api/v1/applications/{id}/signals`: lets admins allow an application to receive a stream of
 * signals, and shows the signals that could not be delivered. Signals are security events about the
 * application's users (Shared Signals Framework 1.0).
 */
@Controller('api/v1/applications/:id/signals')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: APPLICATION_WRITES })
export class ApplicationSignalsController {
  constructor(private readonly notices: ApplicationNotices) {}

  @Get()
  @Route({
    auth: APPLICATION_READS,
    operation: 'getApplicationSignals',
    summary: 'Shows the stream of signals of an application, and what it did not take',
    answers: { 200: SIGNALS_JSON },
    refusals: ['not_found', 'admin_required'],
  })
  async show(
    @Caller() session: VerifiedSession,
    @Param({ schema: APPLICATION_ID }) { id }: { id: string },
  ): Promise<SignalsJson> {
    return signalsJson(await this.notices.showSignals(managerOf(session), id));
  }

  @Put()
  @Route({
    operation: 'allowApplicationSignals',
    summary: 'Allows an application to have a stream of signals',
    answers: { 200: SIGNALS_JSON },
    refusals: ['not_found', 'admin_required'],
  })
  async allow(
    @Caller() session: VerifiedSession,
    @Param({ schema: APPLICATION_ID }) { id }: { id: string },
    @Body({ schema: ALLOW_SIGNALS }) body: z.output<typeof ALLOW_SIGNALS>,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<SignalsJson> {
    const manager = managerOf(session);
    return signalsJson(await this.notices.allowSignals(manager, id, body.subject_format, origin));
  }

  @Delete()
  @Route({
    operation: 'withdrawApplicationSignals',
    summary: 'Ends the stream of signals of an application, and its permission',
    answers: { 204: null },
    refusals: ['not_found', 'admin_required'],
  })
  @HttpCode(204)
  async withdraw(
    @Caller() session: VerifiedSession,
    @Param({ schema: APPLICATION_ID }) { id }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.notices.withdrawSignals(managerOf(session), id, origin);
  }

  @Post(':signalId/repeat')
  @Route({
    operation: 'repeatSignal',
    summary: 'Sends a signal again',
    answers: { 204: null },
    refusals: ['not_found', 'admin_required'],
  })
  @HttpCode(204)
  async repeat(
    @Caller() session: VerifiedSession,
    @Param({ schema: SIGNAL_ID }) { id, signalId }: { id: string; signalId: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.notices.repeatSignal(managerOf(session), id, signalId, origin);
  }

  @Delete(':signalId')
  @Route({
    operation: 'dropSignal',
    summary: 'Drops a signal',
    answers: { 204: null },
    refusals: ['not_found', 'admin_required'],
  })
  @HttpCode(204)
  async drop(
    @Caller() session: VerifiedSession,
    @Param({ schema: SIGNAL_ID }) { id, signalId }: { id: string; signalId: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.notices.dropSignal(managerOf(session), id, signalId, origin);
  }
}

function signalsJson(state: ApplicationSignalsState): SignalsJson {
  const { receiver, stream, waiting, oldest, deadLetters } = state;
  return {
    allowed: receiver !== undefined,
    subject_format: receiver?.subjectFormat ?? null,
    stream: stream
      ? {
          stream_id: stream.id,
          method: stream.method,
          // The query of the URL is left out, because it may contain a secret of the receiver.
          endpoint_url: stream.endpointUrl?.replace(/\?.*$/, '') ?? null,
          status: stream.status,
          events: stream.events,
        }
      : null,
    waiting,
    oldest: oldest?.toISOString() ?? null,
    dead_letters: deadLetters.map(({ id, type, subject, createdAt, deadAt, result }) => ({
      id,
      event: type,
      sub: subject,
      created_at: createdAt.toISOString(),
      dead_at: deadAt.toISOString(),
      result,
    })),
  };
}
