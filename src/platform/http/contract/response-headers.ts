import type { IncomingMessage, OutgoingHttpHeader, ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { EdgeStep } from './edge-step.js';
import { requestPath } from './request-path.js';
import { CACHE_CONTROL, cacheClassOf } from './route-classes.js';
import { securityHeaders, STRICT_TRANSPORT_SECURITY } from './security-headers.js';

/** A header as it is written. */
export type HeaderLine = readonly [name: string, value: string];

/** Whose headers are asked for: the path, and whether the answer travels over TLS that we end. */
interface Exchange {
  readonly path: string;
  readonly encrypted: boolean;
}

/** The headers of every response that depend on nothing but where it is sent. */
export type EdgeHeaders = (exchange: Exchange) => readonly HeaderLine[];

/**
 * Makes the one source of the headers of every response.
 *
 * @param formActionOrigins where forms may lead beside our own origin: the upstream identity providers
 */
export function edgeHeadersFor(formActionOrigins: readonly string[]): EdgeHeaders {
  const plain = securityHeaders(formActionOrigins);
  const variant = (cache: keyof typeof CACHE_CONTROL) => {
    const lines: HeaderLine[] = [...plain, ['Cache-Control', CACHE_CONTROL[cache]]];
    return { plain: lines, encrypted: [...lines, STRICT_TRANSPORT_SECURITY] };
  };
  const variants = { ui: variant('ui'), api: variant('api') };
  return ({ path, encrypted }) => {
    const { plain: overHttp, encrypted: overTls } = variants[cacheClassOf(path)];
    return encrypted ? overTls : overHttp;
  };
}

const KEPT = Symbol('kept headers');
type Keeper = ServerResponse & { [KEPT]?: HeaderLine[] };

/**
 * Gives a response a header that whatever answers, a library's error path too, cannot lose: it is set when the head is
 * written.
 */
export function keepHeader(response: Keeper, name: string, value: string): void {
  (response[KEPT] ??= []).push([name, value]);
}

/** Sets headers that depend on how the request was answered. */
export type LateHeaders = (
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
) => void;

/**
 * Writes the headers of every response at `writeHead`, the last moment there is, so that no later layer can lose or change
 * them.
 */
export function responseHeaders(headersOf: EdgeHeaders, setLate: LateHeaders): EdgeStep {
  return (request, response: Keeper, next) => {
    const lines = headersOf({ path: requestPath(request), encrypted: isEncrypted(request) });
    const writeHead = response.writeHead.bind(response);
    response.writeHead = (status: number, ...rest: unknown[]) => {
      const message = typeof rest[0] === 'string' ? rest[0] : undefined;
      setAll(response, rest.at(-1));
      for (const [name, value] of lines) response.setHeader(name, value);
      for (const [name, value] of response[KEPT] ?? []) response.setHeader(name, value);
      setLate(request, response, status);
      return message === undefined ? writeHead(status) : writeHead(status, message);
    };
    next();
  };
}

type Pair = readonly [name: string, value: OutgoingHttpHeader | undefined];

/**
 * The headers `writeHead` was given, in any of the forms that Node takes: an object, pairs, or names and values in turn. In
 * the last two a name may come twice, as `Set-Cookie` does.
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

/** Whether a request came over TLS that we end. */
export function isEncrypted({ socket }: Pick<IncomingMessage, 'socket'>): boolean {
  return socket instanceof TLSSocket;
}
