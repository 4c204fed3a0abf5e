import { z } from 'zod';

/** The page of the documentation that describes the URL of the database, for error texts. */
export const DATABASE_PAGE = 'docs/operations/databases.md';

/**
 * The kinds of server that a URL may demand by `target_session_attrs`, as in libpq. The other kinds
 * of libpq, such as `standby`, do not suit a service that writes.
 */
const TARGETS = ['any', 'read-write', 'primary'] as const;

export type TargetSession = (typeof TARGETS)[number];

/** A host of the database: a name, an IP address, or the folder of a Unix socket. */
export interface DatabaseHost {
  readonly host: string;
  readonly port: number;
  /** The URL of the database with this host only, because the driver accepts only one. */
  readonly url: string;
}

/**
 * The URL of a database, split into one URL for each host, because the driver accepts only one
 * host.
 */
export interface DatabaseUrl {
  readonly hosts: readonly [DatabaseHost, ...DatabaseHost[]];
  /**
   * The kind of server that the URL demands; undefined if the URL does not say it, which means
   * `any`, as in libpq.
   */
  readonly target: TargetSession | undefined;
  readonly database: string;
}

/** The port of a host for which the URL names no port. */
export const DEFAULT_PORT = 5432;
const PARTS =
  /^postgres(?:ql)?:\/\/(?<login>(?:[^/?#]*@)?)(?<hosts>[^/?#@]*)(?<path>\/[^?#]*)?(?:\?(?<query>[^#]*))?(?:#.*)?$/;
const HOST = /^(?:\[(?<bracketed>[\da-f:.%]+)\]|(?<name>[^:[\]\s]*))(?::(?<port>\d{0,5}))?$/i;

/** The schema of a setting with the URL of a database, which names one host or several. */
export const databaseUrl = z.string().superRefine((text, context) => {
  const problem = problemOf(text);
  if (problem !== undefined)
    context.addIssue({ code: 'custom', message: `${problem} (${DATABASE_PAGE})` });
});

function problemOf(text: string): string | undefined {
  if (!/^postgres(?:ql)?:\/\//.test(text)) return 'must be a postgres:// URL';
  const target = PARTS.exec(text)?.groups?.['query'];
  const wanted = new URLSearchParams(target).get('target_session_attrs');
  if (wanted !== null && !isTarget(wanted))
    return 'target_session_attrs must be read-write, primary or any';
  if (parseDatabaseUrl(text)) return undefined;
  return 'must be like postgres://user:password@host:port,host:port/database';
}

/**
 * Parses the URL of a database.
 * @returns its hosts, and the kind of server that it demands; undefined for a malformed URL
 */
export function parseDatabaseUrl(text: string): DatabaseUrl | undefined {
  const parts = PARTS.exec(text)?.groups;
  if (parts === undefined) return undefined;
  const query = new URLSearchParams(parts['query']);
  const listed = query.get('host') ?? '';
  const found = listed === '' ? hostsOf(parts['hosts'] ?? '') : hostsInQuery(listed, query);
  const target = query.get('target_session_attrs') ?? undefined;
  if (found === undefined || (target !== undefined && !isTarget(target))) return undefined;
  const path = parts['path'] ?? '/';
  const rest = new URLSearchParams(query);
  for (const name of ['host', 'port', 'target_session_attrs']) rest.delete(name);
  const hosts = found.map(({ host, port }) => ({
    host,
    port,
    url: found.length === 1 ? text : urlOf(parts['login'] ?? '', path, host, port, rest),
  }));
  const [first, ...others] = hosts;
  if (first === undefined || !hosts.every(({ url }) => isParsed(url))) return undefined;
  return { hosts: [first, ...others], target, database: path.slice(1) };
}

type Place = Omit<DatabaseHost, 'url'>;

/** Parses the hosts before the path of the URL: `a:5432,[::1]:5433,c`. */
function hostsOf(text: string): Place[] | undefined {
  const items = text.split(',');
  const places = items.flatMap((item) => {
    const { bracketed, name, port } = HOST.exec(item)?.groups ?? {};
    const host = decoded(bracketed ?? name);
    return host === undefined || (host === '' && items.length > 1) ? [] : placeOf(host, port);
  });
  return places.length === items.length ? places : undefined;
}

/**
 * Parses the hosts in the query of the URL: `?host=/run/a,/run/b&port=5432,5433`. If there is one
 * port, all hosts have it.
 */
function hostsInQuery(listed: string, query: URLSearchParams): Place[] | undefined {
  const hosts = listed.split(',');
  const ports = (query.get('port') ?? '').split(',');
  if (hosts.includes('') || (ports.length !== 1 && ports.length !== hosts.length)) return undefined;
  const places = hosts.flatMap((host, index) => placeOf(host, ports[index] ?? ports[0]));
  return places.length === hosts.length ? places : undefined;
}

function placeOf(host: string, text: string | undefined): Place[] {
  const port = text === undefined || text === '' ? DEFAULT_PORT : Number(text);
  return Number.isInteger(port) && port >= 1 && port <= 65_535 ? [{ host, port }] : [];
}

/**
 * Returns the URL of one host. The host goes into the query, because there the folder of a socket
 * and an IPv6 address need no special form.
 */
function urlOf(login: string, path: string, host: string, port: number, rest: URLSearchParams) {
  const query = new URLSearchParams(rest);
  query.set('host', host);
  query.set('port', String(port));
  return `postgres://${login}${path}?${query.toString()}`;
}

/**
 * Returns true if a URL can be parsed. Like the driver, it also accepts a URL with an empty host,
 * and then parses the URL with a placeholder as the host.
 */
function isParsed(url: string): boolean {
  return URL.canParse(url) || URL.canParse(url.replace('@/', '@host/'));
}

function isTarget(text: string): text is TargetSession {
  return TARGETS.some((target) => target === text);
}

function decoded(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
