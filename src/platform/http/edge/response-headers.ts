import type { IncomingMessage, OutgoingHttpHeader, ServerResponse } from 'node:http';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import {
  isEncrypted,
  keptHeadersOf,
  type HeaderLine,
} from '#platform/http/contract/kept-headers.js';
import {
  securityHeaders,
  STRICT_TRANSPORT_SECURITY,
} from '#platform/http/contract/security-headers.js';
import type { RoutePolicies } from '#platform/http/routing/route-policies.js';
import type { Audience } from '#platform/http/routing/route-policy.js';

/**
 * The value of `Cache-Control` by the audience of the route. A browser checks a page again before
 * each use. No cache keeps a response of the API. Routes of the audience `navigation` have the
 * value of `api`.
 */
const CACHE_CONTROL = {
  ui: 'no-cache',
  api: 'no-cache, no-store, must-revalidate',
} as const;

/**
 * The facts that decide the headers of a response: the audience of its route, and whether this
 * process encrypts the connection by TLS.
 */
interface Destination {
  readonly audience: Audience;
  readonly encrypted: boolean;
}

/** Returns the headers that every response to a destination has. */
export type EdgeHeaders = (destination: Destination) => readonly HeaderLine[];

/**
 * Makes the function that returns the headers of every response, so that they have one source.
 *
 * @param formActionOrigins the origins of the upstream identity providers, to which forms may lead
 *   in addition to our own origin
 */
export function edgeHeadersFor(formActionOrigins: readonly string[]): EdgeHeaders {
  const always = securityHeaders(formActionOrigins);
  const variant = (cache: keyof typeof CACHE_CONTROL) => {
    const lines: HeaderLine[] = [...always, ['Cache-Control', CACHE_CONTROL[cache]]];
    return { plain: lines, encrypted: [...lines, STRICT_TRANSPORT_SECURITY] };
  };
  const variants = { ui: variant('ui'), api: variant('api') };
  return ({ audience, encrypted }) => {
    const { plain, encrypted: overTls } = variants[audience === 'ui' ? 'ui' : 'api'];
    return encrypted ? overTls : plain;
  };
}

/**
 * Sets headers that depend on the status of a response, right before the head of the response is
 * written.
 */
export type LateHeaders = (
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
) => void;

/**
 * Writes the headers of every response at `writeHead`, the last possible moment, so that no handler
 * and no library can change them.
 */
export function responseHeaders(
  routePolicies: RoutePolicies,
  headersOf: EdgeHeaders,
  setLate: LateHeaders,
): EdgeStep {
  return (request, response, next) => {
    const { audience } = routePolicies.of(request);
    const lines = headersOf({ audience, encrypted: isEncrypted(request) });
    const writeHead = response.writeHead.bind(response);
    const writeWhole = (status: number, ...rest: unknown[]) => {
      const message = typeof rest[0] === 'string' ? rest[0] : undefined;
      setAll(response, rest.at(-1));
      for (const [name, value] of lines) response.setHeader(name, value);
      for (const [name, value] of keptHeadersOf(response)) response.setHeader(name, value);
      setLate(request, response, status);
      return message === undefined ? writeHead(status) : writeHead(status, message);
    };
    // The function is assigned by its name, because V8 allocates a function literal that is
    // assigned to a property in its old generation (docs/performance/garbage.md).
    response.writeHead = writeWhole;
    next();
  };
}

type Pair = readonly [name: string, value: OutgoingHttpHeader | undefined];

/**
 * Sets the headers that were passed to `writeHead`. Node accepts three forms: an object, a list of
 * pairs, or a list in which names and values alternate. In a list, a name may come twice, as
 * `Set-Cookie` does.
 */
function setAll(response: ServerResponse, headers: unknown): void {
  if (typeof headers !== 'object' || headers === null) return;
  const pairs = pairsOf(headers).filter(([, value]) => value !== undefined);
  for (const [name] of pairs) response.removeHeader(name);
  for (const [name, value = ''] of pairs) {
    response.appendHeader(name, Array.isArray(value) ? value : String(value));
  }
}

function pairsOf(headers: object): readonly Pair[] {
  if (!Array.isArray(headers)) return Object.entries(headers) as Pair[];
  if (Array.isArray(headers[0])) return headers as Pair[];
  const flat = headers as OutgoingHttpHeader[];
  return flat.flatMap((name, i) => (i % 2 === 0 ? [[String(name), flat[i + 1]] as const] : []));
}
