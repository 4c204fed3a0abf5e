import { Module } from '@nestjs/common';
import { HtmlErrors } from '#platform/errors/html.filter.js';
import { SessionCookies } from './session-cookies.service.js';
import { Views } from './views.service.js';

/** What features that render pages or set cookies import. */
@Module({
  providers: [SessionCookies, Views, HtmlErrors],
  exports: [SessionCookies, Views, HtmlErrors],
})
export class HttpModule {}
