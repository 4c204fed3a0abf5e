import { randomUUID } from 'node:crypto';
import type { TestApp } from './app.js';
import { newAddress, type Answer, type Client } from './client.js';
import { rows } from './rows.js';

/** Calls a route of `/api/v1/org` in a user's session, from an unused client IP address. */
export function orgApi(
  browser: Client,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const options = { address: newAddress(), headers };
  const full = `/api/v1/org${path}`;
  return browser.send(method, full, body === undefined ? options : { ...options, body });
}

/**
 * Inserts a member into the organization of a colleague, by default as SCIM does. Returns the id.
 */
export async function addMember(
  app: TestApp,
  colleague: string,
  email: string,
  { scimManaged = true }: { readonly scimManaged?: boolean } = {},
): Promise<string> {
  const id = randomUUID();
  await rows(
    app.dataSource,
    `INSERT INTO users (id, org_id, email, scim_managed)
     SELECT $1, org_id, $2, $3 FROM users WHERE email = $4`,
    [id, email, scimManaged, colleague],
  );
  return id;
}

/** Returns the id of the user with this e-mail address. Throws if there is none. */
export async function idOf(app: TestApp, email: string): Promise<string> {
  const [row] = await rows<{ id: string }>(
    app.dataSource,
    'SELECT id FROM users WHERE email = $1',
    [email],
  );
  if (!row) throw new Error(`nobody is ${email}`);
  return row.id;
}
