import { readdir, readFile } from 'node:fs/promises';
import type { ApiDescription } from '#platform/http/openapi/api-description.js';
import type { OperationExample } from '#platform/http/openapi/operation-example.js';

const DESCRIPTION = `Every credential here needs an attested FIDO2 security key.

- **Errors**: \`/v1\` and \`/api/v1\` answer with problem documents (RFC 9457), the OAuth endpoints with
  \`error\` and \`error_description\` (RFC 6749), SCIM with its own errors (RFC 7644). \`code\`
  is a code of the error catalogue, which has a page for each at \`/errors/{code}\`.
- **Unknown query parameters** are refused with 400 on \`/v1\` and \`/api/v1\`. \`/scim/v2\` and
  \`/oauth\` ignore them (RFC 6749 §3.1).
- **Other methods** than those of a path get 405 with \`Allow\`; \`HEAD\` works as \`GET\` does, and
  \`OPTIONS\` answers 204. Unknown paths get 404, and \`/scim/v2/Me\` 501, since a SCIM token belongs to
  no user. They are in no operation below.
- **Other hosts**: the host of an organization’s issuer has \`/.well-known/openid-configuration\` and
  \`/oauth/jwks\`, and 404 at every other path below. Plain http is redirected to https with 308.
- **Rate limits**: every response has \`x-ratelimit-limit\` (the burst of the tier of the route) and
  \`x-ratelimit-remaining\` (the requests that are left at once). A client that waits the seconds of
  \`retry-after\` is let in.
- **Ids of requests**: every response has \`x-fapi-interaction-id\`, which logs and audit events name.
- **Codes**: every operation lists the codes of its errors by status, as \`x-error-codes\`. \`x-scope\` is
  the scope that its access token or API token needs.
- **Changes**: within a version, responses may gain members and enumerations may gain values.
  Clients ignore what they do not know.`;

/** The texts of the OpenAPI document, and the groups of its routes. */
export const API: ApiDescription = {
  title: 'Hardware-key authentication service',
  version: '1.0',
  description: DESCRIPTION,
  refusalsOfScope: { 'svc:admin': ['admin_required'] },
  examples: readExamples,
  groups: [
    {
      name: 'Account',
      description: 'What the user of the session holds and did.',
      paths: ['/v1/account*', '/v1/setup'],
    },
    {
      name: 'Security keys',
      description: 'The security keys of the user.',
      paths: ['/v1/keys*'],
    },
    {
      name: 'Sessions',
      description: 'The sessions of the user.',
      paths: ['/v1/sessions*'],
    },
    {
      name: 'SSH',
      description: 'SSH certificates, the keys of their authority, and the revocation list.',
      paths: ['/v1/credentials/ssh*'],
    },
    {
      name: 'AWS',
      description: 'Tokens that AWS STS exchanges for the credentials of a role.',
      paths: ['/v1/credentials/aws*'],
    },
    {
      name: 'GitHub',
      description: 'Tokens of the GitHub App, and its installations.',
      paths: ['/v1/credentials/github*', '/api/webhooks/github'],
    },
    {
      name: 'Applications',
      description: 'OAuth clients and Kubernetes clusters.',
      paths: ['/api/v1/applications*'],
    },
    {
      name: 'Secrets and notices',
      description: 'The secrets of an application, and what the service tells it.',
      paths: [
        '/api/v1/applications/:id/secrets*',
        '/api/v1/applications/:id/logout-notices*',
        '/api/v1/applications/:id/signals*',
      ],
    },
    {
      name: 'Organization',
      description: 'Settings, domains, identity providers and the issuer of an organization.',
      paths: ['/api/v1/org*'],
    },
    {
      name: 'Who may reach what',
      description: 'The targets of an organization, and the rules by which they admit its people.',
      paths: ['/api/v1/org/access*'],
    },
    {
      name: 'Members',
      description: 'The members of an organization, and the acts of its admins on them.',
      paths: ['/api/v1/org/members*'],
    },
    {
      name: 'Keys of members',
      description: 'The security keys of all members of an organization.',
      paths: ['/api/v1/org/keys'],
    },
    {
      name: 'Re-enrollment passes',
      description: 'The passes by which members whose keys are lost enroll another one.',
      paths: ['/api/v1/org/members/:id/enrollment-passes*'],
    },
    {
      name: 'Ties of members',
      description:
        'Members and SCIM records that are one person or two, and people who may come back.',
      paths: [
        '/api/v1/org/members/readmit',
        '/api/v1/org/members/:id/part',
        '/api/v1/org/members/:id/give-address',
      ],
    },
    {
      name: 'SCIM tokens',
      description: 'The tokens by which an identity provider provisions users.',
      paths: ['/api/v1/org/scim-tokens*'],
    },
    {
      name: 'API tokens',
      description: 'The tokens by which programs of an organization read, and rotate SCIM tokens.',
      paths: ['/api/v1/org/api-tokens*'],
    },
    {
      name: 'Programs',
      description: 'What programs of an organization read and rotate by an API token.',
      paths: ['/api/v1/programs*'],
    },
    {
      name: 'Secrets to confirm',
      description:
        'The SCIM tokens and secrets that an admin compares after the database has lost commits.',
      paths: ['/api/v1/org/secrets-to-confirm*'],
    },
    {
      name: 'Audit log',
      description: 'The audit events of an organization, and the checkpoints that seal them.',
      paths: ['/api/v1/org/audit-events*', '/api/v1/org/audit-checkpoints*'],
    },
    {
      name: 'Event receivers',
      description: 'The servers to which the service sends the audit events of an organization.',
      paths: ['/api/v1/org/event-receivers*'],
    },
    {
      name: 'SCIM users',
      description: 'Users, provisioned by an identity provider (RFC 7644).',
      paths: ['/scim/v2/Users*'],
    },
    {
      name: 'SCIM groups',
      description: 'Groups, provisioned by an identity provider (RFC 7644).',
      paths: ['/scim/v2/Groups*'],
    },
    {
      name: 'SCIM service',
      description: 'Searches over all resources, bulk operations, and discovery (RFC 7644 §4).',
      paths: ['/scim/v2*'],
    },
    {
      name: 'OAuth tokens',
      description: 'The endpoints at which clients get, describe and revoke tokens.',
      paths: ['/oauth*'],
    },
    {
      name: 'OAuth clients',
      description: 'Clients that register and manage themselves (RFC 7591, RFC 7592).',
      paths: ['/oauth/register*'],
    },
    {
      name: 'Metadata',
      description: 'Metadata documents and public keys.',
      paths: ['/.well-known*', '/oauth/jwks'],
    },
  ],
};

/** The folder of the examples, which `test/api/openapi-examples.test.ts` writes. */
const EXAMPLES = new URL('examples/', import.meta.url);

/** Reads the examples of all operations. */
async function readExamples(): Promise<Readonly<Record<string, OperationExample>>> {
  const names = await readdir(EXAMPLES);
  const texts = await Promise.all(names.map((name) => readFile(new URL(name, EXAMPLES), 'utf8')));
  const parts = texts.map((text) => JSON.parse(text) as Record<string, OperationExample>);
  return Object.assign({}, ...parts) as Record<string, OperationExample>;
}
