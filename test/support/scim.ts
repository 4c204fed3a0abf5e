import { randomUUID } from 'node:crypto';
import { insertScimToken } from '../../src/domain/directory/scim-tokens/scim-tokens.repository.js';
import { mintScimToken } from '../../src/domain/directory/scim-tokens/scim-tokens.repository.js';
import type { TestApp } from './app.js';
import { newAddress, type Answer } from './client.js';

/** An organization with a domain and a SCIM token, as its SCIM client sees it. */
export interface ScimTenant {
  readonly orgId: string;
  readonly domain: string;
  readonly token: string;
  readonly tokenId: string;
  /**
   * Sends a request to `/scim/v2` as the SCIM client, from an unused client IP address. A body gets
   * the media type of SCIM.
   */
  send(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer>;
}

/** Inserts an organization that owns a domain, and a token for its SCIM client. */
export async function addTenant(app: TestApp): Promise<ScimTenant> {
  const orgId = randomUUID();
  const domain = `${orgId.slice(0, 8)}.example`;
  const { token, hash } = mintScimToken();
  await app.dataSource.query(
    "INSERT INTO organizations (id, name, membership) VALUES ($1, $2, 'scim_only')",
    [orgId, domain],
  );
  await app.dataSource.query(
    'INSERT INTO organization_domains (org_id, domain, is_primary, verified_at) VALUES ($1, $2, true, now())',
    [orgId, domain],
  );
  const { id: tokenId } = await insertScimToken(app.dataSource.manager, {
    orgId,
    hash,
    description: 'a test',
    createdBy: randomUUID(),
    expiresInDays: 1,
  });
  return {
    orgId,
    domain,
    token,
    tokenId,
    send: (method, path, body, headers = {}) =>
      app.client().send(method, `/scim/v2${path}`, {
        address: newAddress(),
        ...(body === undefined ? {} : { body }),
        headers: {
          authorization: `Bearer ${token}`,
          origin: '',
          ...(body === undefined ? {} : { 'content-type': 'application/scim+json; charset=utf-8' }),
          ...headers,
        },
      }),
  };
}
