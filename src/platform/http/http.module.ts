import { Module } from '@nestjs/common';
import { ErrorVoices } from '#platform/errors/error-voices.service.js';
import { HtmlErrors } from '#platform/errors/html.filter.js';
import { RequestsInFlight } from './server/requests-in-flight.service.js';
import { SessionCookies } from './session-cookies.service.js';
import { Views } from './views.service.js';

/** What features that render pages or set cookies import. */
@Module({
  providers: [RequestsInFlight, SessionCookies, Views, ErrorVoices, HtmlErrors],
  exports: [RequestsInFlight, SessionCookies, Views, ErrorVoices, HtmlErrors],
})
export class HttpModule {}
