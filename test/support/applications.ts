import { randomBytes } from 'node:crypto';
import {
  ClientsRepository,
  type ClientKind,
} from '../../src/domain/oauth/clients/clients.repository.js';
import { mintOpaqueToken } from '../../src/platform/crypto/opaque-token.js';
import type { TestApp } from './app.js';
import { CALLBACK } from './oauth-flow.js';
import { rows } from './rows.js';

/** The id and secret of an OAuth client that a test made. */
export interface Application {
  readonly clientId: string;
  readonly clientSecret: string;
}

/**
 * Inserts an OAuth client with any metadata. If it has an owner, users of the owner's organization
 * need not consent to it.
 */
export async function addApplication(
  app: TestApp,
  metadata: Readonly<Record<string, unknown>>,
  { owner, kind = 'application' }: { readonly owner?: string; readonly kind?: ClientKind } = {},
): Promise<Application> {
  const [person] = await rows<{ id: string; org_id: string | null }>(
    app.dataSource,
    'SELECT id, org_id FROM users WHERE email = $1',
    [owner ?? ''],
  );
  if (kind === 'application' && !person) throw new Error(`nobody is ${owner}`);
  const clients = app.nest.get(ClientsRepository, { strict: false });
  const { manager } = app.dataSource;
  const clientId = `client-${randomBytes(6).toString('hex')}`;
  const { token: clientSecret, hash } = mintOpaqueToken();
  const ownerId = kind === 'application' ? (person?.id ?? null) : null;
  const orgId = kind === 'application' ? (person?.org_id ?? null) : null;
  await clients.insert(manager, { id: clientId, kind, metadata, ownerId, orgId });
  await clients.addSecret(manager, clientId, hash);
  return { clientId, clientSecret };
}

/** Inserts a web application that a user owns. It sends its client secret in the request body. */
export function addWebApplication(app: TestApp, owner: string): Promise<Application> {
  const metadata = {
    client_name: 'Web',
    redirect_uris: [CALLBACK],
    response_types: ['code'],
    grant_types: ['authorization_code'],
    token_endpoint_auth_method: 'client_secret_post',
  };
  return addApplication(app, metadata, { owner });
}

/** Decodes the claims of a JWT without verifying its signature. */
export function claimsOf(jwt: string): Record<string, unknown> {
  const [, payload = ''] = jwt.split('.');
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
}
