import { expect } from 'vitest';
import type { TestApp } from './app.js';
import { newAddress, type Answer, type Client } from './client.js';
import { idOf, orgApi } from './org-api.js';

/** An API token as the response to its creation shows it. */
export interface CreatedApiToken {
  readonly id: string;
  readonly token: string;
  readonly name: string;
  readonly expires_at: string;
}

/** The networks that contain the IP address of every client in the tests. */
export const TEST_NETWORKS = ['10.0.0.0/8', '127.0.0.0/8', '::1'] as const;

/** Creates an API token as an admin. */
export async function madeApiToken(
  admin: Client,
  scopes: readonly string[] = ['audit:read'],
  more: object = {},
): Promise<CreatedApiToken> {
  const body = { name: 'SIEM', scopes, ...more };
  const answer = await orgApi(admin, 'POST', '/api-tokens', body);
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return answer.json as CreatedApiToken;
}

/** Sends a request as a program does that has only an API token, and no session. */
export function asProgram(
  app: TestApp,
  token: string,
  method: string,
  path: string,
  { address = newAddress(), body }: { readonly address?: string; readonly body?: unknown } = {},
): Promise<Answer> {
  return app.client().send(method, path.startsWith('/') ? path : `/api/v1/programs/${path}`, {
    address,
    headers: { authorization: `Bearer ${token}`, origin: '' },
    ...(body === undefined ? {} : { body }),
  });
}

/** Enrolls a user in the organization of an admin, and makes the user a second admin. */
export async function furtherAdmin(
  app: TestApp,
  admin: Client,
  email: string,
): Promise<{ readonly client: Client; readonly id: string; readonly email: string }> {
  const { client } = await app.enrolled(email);
  const id = await idOf(app, email);
  expect((await orgApi(admin, 'POST', `/members/${id}/promote`)).status).toBe(200);
  return { client, id, email };
}
