import { Body, Controller, Get, HttpCode, Post, Query } from '@nestjs/common';
import { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { SignalStreams } from '#domain/oauth/shared-signals/signal-streams.service.js';
import type { NamedPerson } from '#domain/oauth/shared-signals/stream-subjects.repository.js';
import type { ClientItself } from '#domain/sessions/client-itself.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Caller } from '#platform/http/access/caller.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Route } from '#platform/http/routing/route.js';
import { asciiLowerCase, isUuid } from '#platform/text/single-line.js';
import { CHANGES, READS } from './access.js';
import {
  CHANGED_SUBJECT,
  NEW_STATUS,
  OF_STREAM,
  STATUS_JSON,
  VERIFY,
  type StreamStatusJson,
  type SubjectBody,
} from './signals.schemas.js';
import { statusJson } from './stream-json.js';

/**
 * An id that no person has. It stands for a subject with an id that the service did not issue, so
 * that the request changes nothing.
 */
const NO_PERSON = { id: '00000000-0000-0000-0000-000000000000' } as const;

/**
 * Serves the state, the verification and the people of a stream of signals (Shared Signals
 * Framework §8.1.2 to §8.1.4).
 */
@Controller('ssf')
@Route({ tier: 'general', audience: 'api', errors: 'oauth', auth: CHANGES })
export class StreamStatusController {
  constructor(private readonly signalStreams: SignalStreams) {}

  @Get('status')
  @Route({
    auth: READS,
    summary: 'Shows the state of a stream',
    answers: { 200: STATUS_JSON },
    refusals: ['not_found'],
  })
  async status(
    @Caller() owner: ClientItself,
    @Query({ schema: OF_STREAM }) { stream_id: streamId }: z.output<typeof OF_STREAM>,
  ): Promise<StreamStatusJson> {
    return statusJson(await this.signalStreams.get(owner, streamId));
  }

  @Post('status')
  @Route({
    summary: 'Enables, pauses or disables a stream',
    answers: { 200: STATUS_JSON },
    refusals: ['not_found'],
  })
  @HttpCode(200)
  async setStatus(
    @Caller() owner: ClientItself,
    @Body({ schema: NEW_STATUS }) body: z.output<typeof NEW_STATUS>,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<StreamStatusJson> {
    const { stream_id: streamId, status, reason } = body;
    await this.signalStreams.setStatus({ owner, streamId, origin }, status, reason ?? null);
    return statusJson(await this.signalStreams.get(owner, streamId));
  }

  @Post('verify')
  @Route({
    summary: 'Asks for a verification event, once a minute at most',
    answers: { 204: null },
    refusals: ['not_found'],
  })
  @HttpCode(204)
  verify(
    @Caller() owner: ClientItself,
    @Body({ schema: VERIFY }) { stream_id: streamId, state }: z.output<typeof VERIFY>,
  ): Promise<void> {
    return this.signalStreams.verify(owner, streamId, state);
  }

  @Post('subjects/add')
  @Route({
    summary: 'Adds a person to a stream again',
    answers: { 200: null },
    refusals: ['not_found'],
  })
  @HttpCode(200)
  addSubject(
    @Caller() owner: ClientItself,
    @Body({ schema: CHANGED_SUBJECT }) body: z.output<typeof CHANGED_SUBJECT>,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    return this.#setSubject(owner, body, origin, true);
  }

  @Post('subjects/remove')
  @Route({
    summary: 'Removes a person from a stream',
    answers: { 204: null },
    refusals: ['not_found'],
  })
  @HttpCode(204)
  removeSubject(
    @Caller() owner: ClientItself,
    @Body({ schema: CHANGED_SUBJECT }) body: z.output<typeof CHANGED_SUBJECT>,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    return this.#setSubject(owner, body, origin, false);
  }

  #setSubject(
    owner: ClientItself,
    { stream_id: streamId, subject }: z.output<typeof CHANGED_SUBJECT>,
    origin: AuditOrigin,
    isAdded: boolean,
  ): Promise<void> {
    const person = personOf(subject, this.signalStreams.issuer);
    return this.signalStreams.setSubject({ owner, streamId, origin }, person, isAdded);
  }
}

/**
 * Returns the person that a subject names.
 * @throws DomainError invalid_request for a subject of another issuer
 */
function personOf(subject: SubjectBody, issuer: string): NamedPerson {
  if (subject.format === 'email') return { email: asciiLowerCase(subject.email.trim()) };
  if (subject.iss !== issuer) {
    throw new DomainError('invalid_request', 'subject.iss: must be the issuer of the stream');
  }
  return isUuid(subject.sub) ? { id: subject.sub } : NO_PERSON;
}
