import { Body, Controller, Delete, Get, HttpCode, Patch, Post, Put, Query } from '@nestjs/common';
import { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { SignalStreams } from '#domain/oauth/shared-signals/signal-streams.service.js';
import type { ClientItself } from '#domain/sessions/client-itself.js';
import { Caller } from '#platform/http/access/caller.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Route } from '#platform/http/routing/route.js';
import { CHANGES, READS } from './access.js';
import {
  CHANGED_STREAM,
  NEW_STREAM,
  OF_STREAM,
  OPTIONAL_STREAM,
  STREAM_JSON,
  type ChangedStreamBody,
  type NewStreamBody,
  type StreamJson,
} from './signals.schemas.js';
import { assertSupplied, changedSettings, settingsOf, streamJson } from './stream-json.js';

/**
 * `/ssf/stream`: creates, shows, changes and deletes the stream of an application (Shared Signals
 * Framework §8.1.1). The stream of another application gets 404.
 */
@Controller('ssf/stream')
@Route({ tier: 'general', audience: 'api', errors: 'oauth', auth: CHANGES })
export class StreamsController {
  constructor(private readonly signalStreams: SignalStreams) {}

  @Post()
  @Route({
    summary: 'Creates the stream of the application',
    answers: { 201: STREAM_JSON },
    refusals: ['uniqueness'],
  })
  @HttpCode(201)
  async create(
    @Caller() owner: ClientItself,
    @Body({ schema: NEW_STREAM }) body: NewStreamBody,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<StreamJson> {
    const stream = await this.signalStreams.create(owner, settingsOf(body), origin);
    return this.#json(stream);
  }

  @Get()
  @Route({
    auth: READS,
    summary: 'Shows a stream, or lists the streams of the application',
    answers: { 200: z.union([STREAM_JSON, z.array(STREAM_JSON)]) },
    refusals: ['not_found'],
  })
  async read(
    @Caller() owner: ClientItself,
    @Query({ schema: OPTIONAL_STREAM }) { stream_id: id }: z.output<typeof OPTIONAL_STREAM>,
  ): Promise<StreamJson | StreamJson[]> {
    if (id !== undefined) return this.#json(await this.signalStreams.get(owner, id));
    const stream = await this.signalStreams.find(owner);
    return stream ? [this.#json(stream)] : [];
  }

  /** Changes those members of a stream that the body has (Shared Signals Framework §8.1.1.3). */
  @Patch()
  @Route({
    summary: 'Changes a stream',
    answers: { 200: STREAM_JSON },
    refusals: ['not_found'],
  })
  async update(
    @Caller() owner: ClientItself,
    @Body({ schema: CHANGED_STREAM }) body: ChangedStreamBody,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<StreamJson> {
    const request = { owner, streamId: body.stream_id, origin };
    const stream = await this.signalStreams.update(request, (current) => {
      assertSupplied(body, this.#json(current));
      return changedSettings(current, body);
    });
    return this.#json(stream);
  }

  /** Replaces a stream: a missing member gets its default (Shared Signals Framework §8.1.1.4). */
  @Put()
  @Route({
    summary: 'Replaces a stream',
    answers: { 200: STREAM_JSON },
    refusals: ['not_found'],
  })
  async replace(
    @Caller() owner: ClientItself,
    @Body({ schema: CHANGED_STREAM }) body: ChangedStreamBody,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<StreamJson> {
    const request = { owner, streamId: body.stream_id, origin };
    const stream = await this.signalStreams.update(request, (current) => {
      assertSupplied(body, this.#json(current));
      return { ...settingsOf(body), keepsDelivery: false };
    });
    return this.#json(stream);
  }

  @Delete()
  @Route({
    summary: 'Deletes a stream, with the events that wait',
    answers: { 204: null },
    refusals: ['not_found'],
  })
  @HttpCode(204)
  remove(
    @Caller() owner: ClientItself,
    @Query({ schema: OF_STREAM }) { stream_id: streamId }: z.output<typeof OF_STREAM>,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    return this.signalStreams.remove({ owner, streamId, origin });
  }

  #json(stream: Parameters<typeof streamJson>[0]): StreamJson {
    return streamJson(stream, this.signalStreams.issuer);
  }
}
