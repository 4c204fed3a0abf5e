/**
 * The folders of each layer, the lowest first. A file may import from its own folder and from
 * folders before it in the list. Features never import other features, so only the folders inside
 * one feature are ordered. A Nest module may import from each folder below its own, because it
 * composes them.
 */
export const FOLDER_ORDER: Readonly<Record<string, readonly string[]>> = {
  'src/platform': [
    'text',
    'clock',
    'background',
    'errors',
    'gcra',
    'tls',
    'object-store',
    'database/url',
    'telemetry/filter',
    'telemetry/output',
    'telemetry/gauges',
    'config/table',
    'config',
    'heap',
    'crypto',
    'kms',
    'config-sources',
    'outbound',
    'database/statements',
    'database/queues',
    'database/hosts',
    'database/identity',
    'database/session-settings',
    'database/embedded-postgres',
    'database/tenants',
    'database/migration-steps',
    'database',
    'http/contract',
    'http/routing',
    'http/request',
    'http/views',
    'http/access',
    'http/errors',
    'http/files',
    'http/body',
    'http/openapi',
    'http/edge',
    'http/server',
    'http',
    'rate-limit/buckets',
    'rate-limit',
    'telemetry',
  ],
  'src/domain': [
    'audit/notices',
    'audit',
    'audit/feed',
    'audit/seal',
    'audit/sealed-export',
    'audit/archive',
    'access/reach',
    'access/issuance',
    'access/single-use',
    'access',
    'access-revocation',
    'access-revocation/ended-reach',
    'organizations',
    'organizations/issuers/document-key',
    'organizations/issuers',
    'organizations/domains',
    'providers/openid',
    'providers/saml',
    'providers/saml/metadata',
    'providers/saml/sp-keys',
    'providers',
    'providers/accepted',
    'directory',
    'directory/api-tokens',
    'directory/scim-tokens',
    'directory/provisioning',
    'oauth/token-signing',
    'oauth/clients',
    'oauth/notice-figures',
    'oauth/notice-sending',
    'oauth/logout-notices',
    'oauth/shared-signals',
    'oauth/event-receivers',
    'oauth/notice-watch',
    'oauth/grants',
    'oauth/applications',
    'oauth',
    'sessions/provider-login',
    'sessions/dpop',
    'sessions/remembered',
    'sessions',
    'keys/authenticators/attestation',
    'keys/authenticators/ceremony',
    'keys/authenticators',
    'keys/enrollment-passes',
    'keys/enrollment',
    'keys',
    'sign-in/key-authentication',
    'sign-in/upstream-login',
    'sign-in',
    'ssh/serials',
    'ssh/hardware-keys',
    'ssh/authority',
    'ssh/signatures',
    'ssh/revocation-list',
    'ssh',
    'account/own-reach',
    'account',
    'github/app',
    'github/installations',
    'github/tokens',
    'github/links',
    'github',
    'aws',
    'admin/audit-search',
    'admin/revocation-kinds',
    'admin/operator-access',
    'admin/database-failover/reconciliation',
    'admin/database-failover',
    'admin/database-failover/by-operator',
    'admin/clean-up',
    'admin/members',
    'admin/access-rules',
    'admin/organization',
    'admin',
  ],
  'packages/svc/src': [
    'program',
    'terminal',
    'files',
    'agent',
    'server',
    'login',
    'command',
    'child',
    'reach',
    'changes',
    'ssh',
    'ssh/commands',
    'aws/session',
    'aws',
    'kubectl',
    'git',
    'docker',
    'exec',
    'setup',
    'account',
    'machine',
    'update',
    'host',
    'admin/acts',
    'admin/exports',
    'admin/members',
    'admin/access',
    'admin/audit',
    'admin',
    'audit',
    '',
  ],
  'packages/demo/src': [
    'people',
    'browser-key',
    'application',
    'scenario/ssh',
    'scenario',
    'tour',
    '',
  ],
  'packages/scim-language/src': [
    'text',
    'errors',
    'schema/attributes',
    'schema',
    'filter',
    'body',
    'patch',
    'response',
    '',
  ],
  'src/features/pages': [
    'shell',
    'account',
    'admin',
    'admin/access',
    'admin/members',
    'admin/tokens',
    'admin/receivers',
    'admin/settings',
    'admin/applications',
    'admin/audit',
    'documents/manual',
    'documents',
    '',
  ],
  'src/features/scim': ['language', 'query', 'resources', 'bulk', 'http', ''],
  'src/features/oidc': [
    'protocol',
    'protocol/clients',
    'signing',
    'request',
    'storage',
    'engine',
    'token',
    'introspection',
    'device',
    'authorization',
    'registration',
    'discovery',
    'logout',
    'applications/registration',
    'applications',
    '',
  ],
};

/**
 * Describes an import that the order of folders forbids, as `file -> target`, with the reason if
 * the folder is not in the list. Returns undefined if the import is allowed.
 */
export function againstFolderOrder(from: string, target: string): string | undefined {
  const layer = Object.keys(FOLDER_ORDER).find(
    (name) => from.startsWith(`${name}/`) && target.startsWith(`${name}/`),
  );
  if (layer === undefined) return undefined;
  const order = FOLDER_ORDER[layer] ?? [];
  const [own, other] = [from, target].map((path) => folderBelow(layer, path));
  if (own === undefined || other === undefined || own === other) return undefined;
  if (from.endsWith('.module.ts') && other.startsWith(`${own}/`)) return undefined;
  const [rank, otherRank] = [order.indexOf(own), order.indexOf(other)];
  if (rank === -1) return `${from} -> ${target}: ${layer}/${own} is not in the list`;
  return otherRank < rank && otherRank !== -1 ? undefined : `${from} -> ${target}`;
}

/**
 * Returns the folder of a file relative to its layer; an empty text for a file directly in the
 * layer's folder.
 */
function folderBelow(layer: string, path: string): string {
  return path.slice(layer.length + 1, Math.max(layer.length + 1, path.lastIndexOf('/')));
}

/**
 * Returns the circles in a directed graph: each group of two or more names that all lead to one
 * another. It uses Tarjan's algorithm for strongly connected components.
 */
export function circlesOf(arrows: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const order = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const circles: string[][] = [];
  const visit = (name: string): void => {
    order.set(name, order.size);
    low.set(name, order.size - 1);
    stack.push(name);
    for (const next of arrows.get(name) ?? []) {
      if (!order.has(next)) visit(next);
      if (stack.includes(next)) low.set(name, Math.min(low.get(name) ?? 0, low.get(next) ?? 0));
    }
    if (low.get(name) !== order.get(name)) return;
    const circle = stack.splice(stack.indexOf(name));
    if (circle.length > 1) circles.push(circle);
  };
  for (const name of arrows.keys()) if (!order.has(name)) visit(name);
  return circles;
}
