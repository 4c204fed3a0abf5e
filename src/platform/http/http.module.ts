import { Module } from '@nestjs/common';
import { ErrorVoices } from '#platform/http/errors/error-renderer.service.js';
import { RequestsInFlight } from '#platform/http/server/requests-in-flight.service.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Views } from '#platform/http/views/views.service.js';

/** What features that render pages or set cookies import. */
@Module({
  providers: [RequestsInFlight, SessionCookies, Views, ErrorVoices],
  exports: [RequestsInFlight, SessionCookies, Views, ErrorVoices],
})
export class HttpModule {}
