import { Module } from '@nestjs/common';
import { UsersModule } from '#domain/users/users.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { SessionsController } from './sessions.controller.js';

/** `/v1/sessions`: a user sees where they are logged in, and ends what they do not know. */
@Module({ imports: [HttpModule, UsersModule], controllers: [SessionsController] })
export class OwnSessionsModule {}
