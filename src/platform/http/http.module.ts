import { Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { compileRoutes } from '#platform/http/routing/compile-routes.js';
import { RoutePolicies } from '#platform/http/routing/route-policies.js';
import { ApiDocument } from '#platform/http/openapi/api-document.service.js';
import { ErrorRenderer } from '#platform/http/errors/error-renderer.service.js';
import { RequestsInFlight } from '#platform/http/server/requests-in-flight.service.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Views } from '#platform/http/views/views.service.js';

/**
 * Provides what features and the steps before the router share: cookies, views, errors, and the
 * table of routes.
 */
@Module({
  providers: [
    RequestsInFlight,
    SessionCookies,
    Views,
    ErrorRenderer,
    ApiDocument,
    { provide: RoutePolicies, useFactory: compileRoutes, inject: [ModulesContainer] },
  ],
  exports: [RequestsInFlight, SessionCookies, Views, ErrorRenderer, ApiDocument, RoutePolicies],
})
export class HttpModule {}
