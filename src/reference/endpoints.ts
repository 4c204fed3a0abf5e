import type { CompiledRoute } from '#platform/http/routing/route-policies.js';
import type { AuthRule, RoutePolicy } from '#platform/http/routing/route-policy.js';
import { TIERS } from '#platform/rate-limit/buckets/tiers.js';
import { listItem } from './markdown.js';

/** A page of the reference. It lists the routes whose paths begin with one of `paths`. */
interface Part {
  readonly file: string;
  readonly title: string;
  readonly about: string;
  readonly paths: readonly string[];
}

/**
 * The pages in order. A route is on the first page of which `paths` has a prefix of its path. The
 * last page has the prefix `/`, so that it gets the routes that are on no page before it.
 */
const PARTS: readonly Part[] = [
  {
    file: 'endpoints-organization.md',
    title: 'Endpoints of an organization',
    about: 'The API of admins and of programs, below `/api/v1`.',
    paths: ['/api/v1/'],
  },
  {
    file: 'endpoints-protocols.md',
    title: 'Endpoints of protocols',
    about: 'OAuth 2.0, OpenID Connect, SAML, shared signals and SCIM.',
    paths: ['/oauth/', '/saml/', '/scim/', '/ssf/', '/.well-known/', '/device'],
  },
  {
    file: 'endpoints-users.md',
    title: 'Endpoints of users',
    about: 'The API of users and their credentials, below `/v1`.',
    paths: ['/v1/'],
  },
  {
    file: 'endpoints-pages.md',
    title: 'Pages and other endpoints',
    about: 'The pages, their files, and what monitors and load balancers ask.',
    paths: ['/'],
  },
];

/** Returns the Markdown of the pages of all endpoints, by file name. */
export function endpointsPages(routes: readonly CompiledRoute[]): Readonly<Record<string, string>> {
  const byPart = Map.groupBy(routes.toSorted(byPath), ({ template }) =>
    PARTS.find(({ paths }) => paths.some((path) => template.startsWith(path))),
  );
  const pages = PARTS.map((part) => [part.file, pageOf(part, byPart.get(part) ?? [])]);
  return { 'endpoints.md': startPage(), ...Object.fromEntries(pages) };
}

function startPage(): string {
  const parts = PARTS.map(({ file, title, about }) => listItem(`[${title}](${file}): ${about}`));
  return `# Endpoints

\`npm run reference\` writes these pages from the \`@Route\` decorators of the controllers. Do not edit
them. \`/docs/api\` of the service has the bodies, the parameters and the errors of each route.

${parts.join('\n')}

## What a row says

- **Caller** is the session or token that the route requires. A verified session is one that a
  security key verified; an OAuth access token needs the scope that stands beside it. \`none\`: the
  route reads no session; the OAuth endpoints authenticate clients and tokens themselves.
- **Tier** is the rate limit of the route for one client:
${tiers()}
- **Body** is the media type that the route reads, and the largest size.
- **Errors** is the format of errors: \`problem\` (RFC 9457), \`oauth\` (RFC 6749), \`scim\` (RFC 7644),
  \`html\`, or \`negotiated\` between HTML and a problem document by \`Accept\`.
`;
}

/** The facts of a route, by the words that name them. */
type Facts = Readonly<Record<string, string>>;

/**
 * Returns the Markdown of a page. It states the most frequent value of each fact once, and the
 * other values in the rows.
 */
function pageOf({ title, about }: Part, routes: readonly CompiledRoute[]): string {
  const rows = routes.map(({ policy }) => factsOf(policy));
  const usual = Object.fromEntries(
    Object.keys(rows[0] ?? {}).map((name) => [
      name,
      mostFrequent(rows.map((row) => row[name] ?? '')),
    ]),
  );
  const items = routes.map((route) => listItem(itemOf(route, usual)));
  return `# ${title}

\`npm run reference\` writes this page. Do not edit it. [Endpoints](endpoints.md) says what a row says.

${about} If a row does not say otherwise:

${Object.entries(usual)
  .map(([name, value]) => listItem(`${name}: ${value}`))
  .join('\n')}

## Routes

${items.join('\n')}
`;
}

function itemOf({ method, template, policy }: CompiledRoute, usual: Facts): string {
  const path = template.replaceAll(/:(\w+)/g, '{$1}');
  const others = Object.entries(factsOf(policy))
    .filter(([name, value]) => value !== usual[name])
    .map(([name, value]) => ` ${name}: ${value}.`);
  return `\`${method} ${path}\`: ${policy.summary}.${others.join('')}`;
}

function factsOf(policy: RoutePolicy): Facts {
  return {
    Caller: callerOf(policy.auth),
    Tier: policy.tier,
    Body: bodyOf(policy),
    Errors: policy.errors,
  };
}

function mostFrequent(values: readonly string[]): string {
  const counts = [...Map.groupBy(values, (value) => value)].map(([value, same]) => ({
    value,
    count: same.length,
  }));
  return counts.toSorted((a, b) => b.count - a.count)[0]?.value ?? '';
}

function byPath(a: CompiledRoute, b: CompiledRoute): number {
  if (a.template === b.template) return a.method < b.method ? -1 : 1;
  return a.template < b.template ? -1 : 1;
}

function callerOf({ session, scope, touchedWithinSeconds, headerOnly }: AuthRule): string {
  const caller = CALLERS[session];
  const withScope = scope === undefined ? caller : `${caller}, \`${scope}\``;
  const withHeader = headerOnly === true ? `${withScope}, no cookie` : withScope;
  if (touchedWithinSeconds === undefined) return withHeader;
  return `${withHeader}, key touched within ${touchedWithinSeconds} s`;
}

const CALLERS = {
  none: 'none',
  optional: 'session, if any',
  any: 'session',
  verified: 'verified session',
  provisioner: 'SCIM token',
  client: 'token of an application itself',
  program: 'API token',
} as const satisfies Record<AuthRule['session'], string>;

function bodyOf({ body: { kind, max } }: RoutePolicy): string {
  return kind === 'none' ? 'none' : `${BODIES[kind]}, ${max / 1024} KiB`;
}

const BODIES = {
  json: 'JSON',
  scim: 'SCIM JSON',
  form: 'form',
  fields: 'form',
  raw: 'signed JSON',
} as const;

function tiers(): string {
  const rates = Object.entries(TIERS).map(
    ([name, { burst, interval }]) =>
      `  - ${name}: ${burst} requests at once, then one every ${interval / 1000} s`,
  );
  return [...rates, '  - unlimited: no limit'].join('\n');
}
