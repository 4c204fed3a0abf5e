import { Module } from '@nestjs/common';
import { OAuthModule } from '#domain/oauth/oauth.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { PollController } from './poll.controller.js';
import { StreamStatusController } from './stream-status.controller.js';
import { StreamsController } from './streams.controller.js';
import { TransmitterController } from './transmitter.controller.js';

/**
 * Serves the Shared Signals Framework 1.0, by which applications learn of security events of their
 * users: metadata, streams and polls.
 */
@UnmatchedPaths({
  '/ssf/*': { tier: 'general', errors: 'oauth', protectedResource: true },
})
@Module({
  imports: [HttpModule, OAuthModule, SessionsModule],
  controllers: [PollController, StreamStatusController, StreamsController, TransmitterController],
})
export class SignalsModule {}
