import { Body, Controller, HttpCode, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { z } from 'zod';
import { PolledSignals } from '#domain/oauth/shared-signals/polled-signals.service.js';
import { SignalStreams } from '#domain/oauth/shared-signals/signal-streams.service.js';
import type { ClientItself } from '#domain/sessions/client-itself.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { CHANGES } from './access.js';
import { POLL, POLLED_JSON, POLLED_STREAM, type PollBody } from './signals.schemas.js';

/**
 * `/ssf/poll/{stream_id}`: returns the events of a stream to its receiver, and waits if there are
 * none (RFC 8936).
 */
@Controller('ssf/poll')
@Route({ tier: 'general', audience: 'api', errors: 'oauth', auth: CHANGES })
export class PollController {
  constructor(
    private readonly signalStreams: SignalStreams,
    private readonly polledSignals: PolledSignals,
  ) {}

  @Post(':id')
  @Route({
    summary: 'Acknowledges events of a stream, and returns or waits for the next ones (RFC 8936)',
    answers: { 200: POLLED_JSON },
    refusals: ['not_found'],
  })
  @HttpCode(200)
  async poll(
    @Caller() owner: ClientItself,
    @Param({ schema: POLLED_STREAM }) { id }: z.output<typeof POLLED_STREAM>,
    @Body({ schema: POLL }) body: PollBody,
    @Res({ passthrough: true }) response: Response,
  ): Promise<z.output<typeof POLLED_JSON>> {
    const stream = await this.signalStreams.get(owner, id);
    if (stream.method !== 'poll') {
      throw new DomainError('not_found', 'There is no such stream to poll.');
    }
    const leaving = new AbortController();
    response.once('close', () => leaving.abort());
    const { sets, hasMore } = await this.polledSignals.poll(stream, owner, {
      most: body.maxEvents ?? Number.POSITIVE_INFINITY,
      returnsImmediately: body.returnImmediately,
      acknowledged: body.ack,
      faults: Object.fromEntries(
        Object.entries(body.setErrs).map(([jti, { err, description }]) => [
          jti,
          description === undefined ? err : `${err}: ${description}`,
        ]),
      ),
      signal: leaving.signal,
    });
    return { sets, ...(hasMore ? { moreAvailable: true } : {}) };
  }
}
