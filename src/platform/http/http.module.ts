import { Module } from '@nestjs/common';
import { ErrorVoices } from '#platform/errors/error-voices.service.js';
import { RequestsInFlight } from './server/requests-in-flight.service.js';
import { SessionCookies } from './session-cookies.service.js';
import { Views } from './views.service.js';

/** What features that render pages or set cookies import. */
@Module({
  providers: [RequestsInFlight, SessionCookies, Views, ErrorVoices],
  exports: [RequestsInFlight, SessionCookies, Views, ErrorVoices],
})
export class HttpModule {}
