import type { CompiledRoute } from '#platform/http/routing/route-policies.js';
import type { AuthRule, RoutePolicy } from '#platform/http/routing/route-policy.js';
import { TIERS } from '#platform/rate-limit/buckets/tiers.js';
import { markdownTable } from './markdown.js';

const HEAD = ['Route', 'Purpose', 'Caller', 'Tier', 'Body', 'Errors'];

/** Writes the page of all endpoints from the table of routes. */
export function endpointsPage(routes: readonly CompiledRoute[]): string {
  const rows = routes.toSorted(byPath).map(rowOf);
  return `# Endpoints

\`npm run reference\` writes this page from the \`@Route\` decorators of the controllers. Do not edit it.

- **Caller** names the session or token that the route requires. A verified session is one that a
  security key verified; an OAuth access token needs the scope that stands beside it. \`—\`: the route
  reads no session; the OAuth endpoints authenticate clients and tokens themselves.
- **Tier** is the rate limit of the route for one client:
${tiers()}
- **Body** is the media type that the route reads, and the largest size.
- **Errors** is the format of errors: \`problem\` (RFC 9457), \`oauth\` (RFC 6749), \`scim\` (RFC 7644),
  \`html\`, or \`negotiated\` between HTML and a problem document by \`Accept\`.

${markdownTable([HEAD, ...rows])}
`;
}

function byPath(a: CompiledRoute, b: CompiledRoute): number {
  if (a.template === b.template) return a.method < b.method ? -1 : 1;
  return a.template < b.template ? -1 : 1;
}

function rowOf({ method, template, policy }: CompiledRoute): string[] {
  const path = template.replaceAll(/:(\w+)/g, '{$1}');
  return [
    `\`${method} ${path}\``,
    policy.summary,
    callerOf(policy.auth),
    policy.tier,
    bodyOf(policy),
    policy.errors,
  ];
}

function callerOf({ session, scope, touchedWithinSeconds, headerOnly }: AuthRule): string {
  const caller = CALLERS[session];
  const withScope = scope === undefined ? caller : `${caller}, \`${scope}\``;
  const withHeader = headerOnly === true ? `${withScope}, no cookie` : withScope;
  if (touchedWithinSeconds === undefined) return withHeader;
  return `${withHeader}, key touched within ${touchedWithinSeconds} s`;
}

const CALLERS = {
  none: '—',
  optional: 'session, if any',
  any: 'session',
  verified: 'verified session',
  provisioner: 'SCIM token',
  client: 'token of an application itself',
  program: 'API token',
} as const satisfies Record<AuthRule['session'], string>;

function bodyOf({ body: { kind, max } }: RoutePolicy): string {
  return kind === 'none' ? '—' : `${BODIES[kind]}, ${max / 1024} KiB`;
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
