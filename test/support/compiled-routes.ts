import 'reflect-metadata';
import type { ModulesContainer } from '@nestjs/core';
import { compileRoutes } from '#platform/http/routing/compile-routes.js';
import type { RoutePolicies } from '#platform/http/routing/route-policies.js';

/**
 * Compiles the routes of controllers as if one module had them. No application needs to start for
 * it.
 */
export function compiledRoutes(module: object, ...controllers: readonly object[]): RoutePolicies {
  const wrapped = controllers.map((metatype) => [metatype, { metatype }] as const);
  const container = new Map([['module', { metatype: module, controllers: new Map(wrapped) }]]);
  return compileRoutes(container as unknown as ModulesContainer);
}
