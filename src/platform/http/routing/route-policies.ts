import type { IncomingMessage } from 'node:http';
import type { ExecutionContext } from '@nestjs/common';
import { DomainError } from '#platform/errors/domain-error.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { originForm, requestPath } from '#platform/http/contract/request-path.js';
import type { HandlerSchemas } from './handler-schemas.js';
import { asUnmatched, UNMATCHED_POLICY, type RoutePolicy } from './route-policy.js';
import { matchesSegments, PathTree, segmentsOf } from './path-tree.js';
import type { RouteTable } from './route-table.js';

/** The template of the fallback route, which takes every request that no other route takes. */
export const FALLBACK_TEMPLATE = '/{*path}';

/** A route with its policy. */
export interface CompiledRoute {
  /** The HTTP method; `ALL` for a route of every method. */
  readonly method: string;
  /** The path template as the router knows it, with parameters as `:id`. */
  readonly template: string;
  readonly handler: Handler;
  readonly policy: RoutePolicy;
  readonly schemas: HandlerSchemas;
}

/** A method of a controller that handles a route. */
export type Handler = (...parameters: never[]) => unknown;

/**
 * A route and the segments of its template. The template is split once, because all pairs of
 * templates are compared at the start.
 */
interface SplitRoute {
  readonly route: CompiledRoute;
  readonly wanted: readonly string[];
}

/** The policies of one path, by the method of the request. */
interface PathEntry {
  readonly byMethod: ReadonlyMap<string, RoutePolicy>;
  /** The policy of a request whose method no route of this path serves. */
  readonly otherwise: RoutePolicy;
}

const POLICY = Symbol('policy of the request');
type Classified = IncomingMessage & {
  [POLICY]?: RoutePolicy;
  /** The route that Express matched. */
  readonly route?: { readonly path: string };
};

/**
 * The table of the policies of all routes. It is made at start-up; the steps before the router read
 * it by path, and the guards by handler. A look-up ignores case and a slash at the end of the path,
 * as the router does.
 */
export class RoutePolicies {
  readonly #byHandler = new Map<Handler, Map<string, RoutePolicy>>();
  readonly #byPath = new PathTree<PathEntry>();
  /** The paths that serve the metadata of our protected resources (RFC 9728), the longest first. */
  readonly #resourceMetadata: readonly string[];

  constructor(
    readonly routes: readonly CompiledRoute[],
    private readonly unmatched: RouteTable<RoutePolicy>,
    private readonly bases: readonly string[] = [],
  ) {
    this.#resourceMetadata = routes
      .filter(({ policy }) => policy.resourceMetadata)
      .map(({ template }) => template)
      .toSorted((a, b) => b.length - a.length);
    const bySegments = routes.map((route) => ({ route, wanted: segmentsOf(route.template) }));
    for (const { handler, template, policy } of routes) {
      this.#byPath.set(template, entryOf(template, bySegments));
      const byTemplate = this.#byHandler.get(handler) ?? new Map<string, RoutePolicy>();
      this.#byHandler.set(handler, byTemplate.set(template, policy));
    }
  }

  /**
   * Returns the path that serves the metadata of the protected resource to which a path belongs;
   * undefined if there is none. The metadata of the paths below `/x` has the metadata path of the
   * whole service, with `/x` at its end (RFC 9728 §3.1).
   */
  resourceMetadataOf(path: string): string | undefined {
    const whole = this.#resourceMetadata.at(-1) ?? '';
    return this.#resourceMetadata.find((template) =>
      `${path}/`.startsWith(`${template.slice(whole.length)}/`),
    );
  }

  /** Returns the policy of a method and a path without using the router, which has not run yet. */
  ofPath(method: string, path: string): RoutePolicy {
    const entry = this.#byPath.find(path);
    if (entry === undefined) return this.unmatched.of(path) ?? UNMATCHED_POLICY;
    const policy = entry.byMethod.get(method === 'HEAD' ? 'GET' : method);
    return policy ?? entry.byMethod.get('ALL') ?? entry.otherwise;
  }

  /** Returns the policy of a request. It is looked up once, and stored on the request. */
  of(request: Classified): RoutePolicy {
    return (request[POLICY] ??= this.ofPath(
      request.method ?? '',
      requestPath(request, this.bases),
    ));
  }

  /**
   * Makes a request count as a request for a path that no route has. Its errors are then problem
   * documents for programs, and never HTML.
   */
  ofNothing(request: Classified): void {
    request[POLICY] = { ...UNMATCHED_POLICY, errors: 'problem' };
  }

  /**
   * Replaces the target of a request by its path and query, so that the router reads the same path
   * as the steps before it. The host in the target is lost, so an earlier step must check it.
   */
  readonly normalizeTarget: EdgeStep = (request, _response, next) => {
    request.url = originForm(request.url ?? '', this.bases);
    next();
  };

  /**
   * Returns the policy of the handler that the router chose. If no route takes the request, its
   * policy comes from its path.
   *
   * @throws DomainError internal for a handler that the table does not have
   */
  ofContext(context: ExecutionContext): RoutePolicy {
    const request = context.switchToHttp().getRequest<Classified>();
    const template = request.route?.path ?? FALLBACK_TEMPLATE;
    if (template === FALLBACK_TEMPLATE) return (request[POLICY] = this.#unmatchedAt(request));
    const policy = this.#byHandler.get(context.getHandler() as Handler)?.get(template);
    if (!policy) throw new DomainError('internal', 'The route is not in the table of routes.');
    return (request[POLICY] = policy);
  }

  /**
   * Returns the policy of a request that no route takes. No handler reads its query, so a parameter
   * is ignored, and the response is 404 or 405 as without one.
   */
  #unmatchedAt(request: Classified): RoutePolicy {
    const path = requestPath(request, this.bases);
    const found = this.#byPath.find(path)?.otherwise ?? this.unmatched.of(path);
    return found ? { ...found, query: UNMATCHED_POLICY.query } : UNMATCHED_POLICY;
  }
}

/**
 * Collects the policies of the routes with one path template.
 * @throws Error if these routes differ in a rule that is applied before the method is known
 */
function entryOf(template: string, routes: readonly SplitRoute[]): PathEntry {
  const segments = segmentsOf(template);
  const matching = routes
    .filter(({ wanted }) => matchesSegments(wanted, segments))
    .map(({ route }) => route);
  const byMethod = new Map<string, RoutePolicy>();
  for (const { method, policy } of matching) {
    if (!byMethod.has(method)) byMethod.set(method, policy);
  }
  const [first = UNMATCHED_POLICY] = byMethod.values();
  const otherwise = asUnmatched(byMethod.get('GET') ?? first);
  for (const policy of byMethod.values()) {
    if (sharedRules(policy) !== sharedRules(otherwise)) {
      throw new Error(`The routes of ${template} must share audience, hosts, errors and body size`);
    }
  }
  return { byMethod, otherwise };
}

/**
 * Returns the rules that all routes of one path must share, because the steps before the router
 * apply them without regard to the method. The rules are joined to one text, so that two policies
 * can be compared.
 */
function sharedRules(policy: RoutePolicy): string {
  const { audience, hosts, tenantHosts, plainHttp, errors, body } = policy;
  return [audience, hosts, tenantHosts, plainHttp, errors, body.max].join(' ');
}
