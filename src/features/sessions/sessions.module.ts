import { Module } from '@nestjs/common';
import { SessionsModule as DomainSessionsModule } from '#domain/sessions/sessions.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { SessionsController } from './sessions.controller.js';

/** Serves `/v1/sessions`, where users list and end their sessions. */
@UnmatchedPaths({ '/v1/sessions/*': { tier: 'general' } })
@Module({ imports: [HttpModule, DomainSessionsModule], controllers: [SessionsController] })
export class OwnSessionsModule {}
