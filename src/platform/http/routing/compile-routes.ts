import { RequestMethod } from '@nestjs/common';
import { METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { MetadataScanner, ModulesContainer, Reflector } from '@nestjs/core';
import { handlerSchemas, namesOf } from './handler-schemas.js';
import {
  FALLBACK_TEMPLATE,
  RoutePolicies,
  type CompiledRoute,
  type Handler,
} from './route-policies.js';
import { UNMATCHED_POLICY, withChanges, type RoutePolicy } from './route-policy.js';
import { RouteTable } from './route-table.js';
import { Route, UnmatchedPaths, type UnmatchedRules } from './route.js';

type Constructor = new (...parameters: never[]) => object;

const reflector = new Reflector();
const scanner = new MetadataScanner();

/** The methods whose body has a meaning (RFC 9110 §9.3), and `ALL` for routes of every method. */
const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH', 'ALL']);

const JSON_BODY = { body: { kind: 'json' } } as const;
const NO_BODY = { body: { kind: 'none' } } as const;

/**
 * Makes the table of route policies from the decorators of all modules and controllers.
 *
 * @throws Error if a route declares no tier of the rate limit or no auth rule
 */
export function compileRoutes(modules: ModulesContainer): RoutePolicies {
  const all = [...modules.values()];
  const rules = all
    .map(({ metatype }) => reflector.get(UnmatchedPaths, metatype))
    .flatMap((each) => Object.entries(each ?? {}));
  const unmatched = compileUnmatched(rules);
  const controllers = all.flatMap((module) => [...module.controllers.values()]);
  const routes = controllers.flatMap(({ metatype }) =>
    typeof metatype === 'function' ? routesOf(metatype as Constructor, unmatched) : [],
  );
  const bases = rules
    .filter(([, { dropsSecondSlash }]) => dropsSecondSlash)
    .map(([pattern]) => pattern.replace(/\*$/, '').toLowerCase());
  return new RoutePolicies(routes, unmatched, bases);
}

/**
 * Makes the rules for requests whose path no route has. Each rule inherits from the rules of the
 * shorter paths that cover its path.
 */
function compileUnmatched(
  rules: readonly [string, UnmatchedRules[string]][],
): RouteTable<RoutePolicy> {
  const rows = rules.toSorted(([a], [b]) => a.length - b.length);
  const compiled: [string, RoutePolicy][] = [];
  for (const [pattern, { dropsSecondSlash: _, ...changes }] of rows) {
    const base = new RouteTable(compiled).of(pattern.replace(/\*$/, '')) ?? UNMATCHED_POLICY;
    compiled.push([pattern, withChanges(base, changes)]);
  }
  return new RouteTable(compiled);
}

function routesOf(controller: Constructor, unmatched: RouteTable<RoutePolicy>): CompiledRoute[] {
  const prototype = controller.prototype as Record<string, Handler>;
  const shared = reflector.get(Route, controller);
  return scanner.getAllMethodNames(prototype).flatMap((name) => {
    const handler = prototype[name];
    if (handler === undefined) return [];
    const own = reflector.get(Route, handler);
    const schemas = handlerSchemas(controller, name);
    const parameters = namesOf(schemas.query);
    return templatesOf(controller, handler).map((template) => {
      const where = `${controller.name}.${name} (${template})`;
      if (!(own?.tier ?? shared?.tier)) throw new Error(`${where} states no tier in its @Route`);
      if (!(own?.auth ?? shared?.auth)) throw new Error(`${where} states no auth in its @Route`);
      const method = methodOf(handler);
      const base = withChanges(unmatched.of(template) ?? UNMATCHED_POLICY, JSON_BODY, shared, own);
      const rules = METHODS_WITH_BODY.has(method) ? base : withChanges(base, NO_BODY);
      return { method, template, handler, policy: { ...rules, parameters }, schemas };
    });
  });
}

/**
 * Returns the path templates of a handler, as Nest registers them. The list is empty for the
 * fallback, and for a method that is no handler.
 */
function templatesOf(controller: Constructor, handler: Handler): string[] {
  const paths = [Reflect.getMetadata(PATH_METADATA, handler) as string | string[] | undefined];
  const bases = [Reflect.getMetadata(PATH_METADATA, controller) as string | string[]];
  return bases.flat().flatMap((base) =>
    paths.flat().flatMap((path) => {
      if (path === undefined || path === FALLBACK_TEMPLATE) return [];
      const template = `/${base}/${path}`.replaceAll(/\/+/g, '/').replace(/(?<=.)\/$/, '');
      if (/[*{}()?]/.test(template)) throw new Error(`${template} is no plain template`);
      return [template];
    }),
  );
}

function methodOf(handler: Handler): string {
  return RequestMethod[Reflect.getMetadata(METHOD_METADATA, handler) as number] ?? '';
}
