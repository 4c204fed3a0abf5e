import { Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { compileRoutes } from '#platform/http/routing/compile-routes.js';
import { RoutePolicies } from '#platform/http/routing/route-policies.js';
import { ErrorVoices } from '#platform/http/errors/error-renderer.service.js';
import { RequestsInFlight } from '#platform/http/server/requests-in-flight.service.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Views } from '#platform/http/views/views.service.js';

/** What features that render pages or set cookies import. */
@Module({
  providers: [
    RequestsInFlight,
    SessionCookies,
    Views,
    ErrorVoices,
    { provide: RoutePolicies, useFactory: compileRoutes, inject: [ModulesContainer] },
  ],
  exports: [RequestsInFlight, SessionCookies, Views, ErrorVoices, RoutePolicies],
})
export class HttpModule {}
