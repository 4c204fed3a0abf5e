import { randomUUID } from 'node:crypto';
import type { TestApp } from './app.js';
import { newAddress, type Answer, type Client } from './client.js';
import { rows } from './rows.js';

/** Calls a route below `/api/v1/org` with a user's session, from an unused address. */
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

/** Inserts a member into the organization of a user, as SCIM does, and returns the id. */
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

/** Returns the id of the user with an e-mail. */
export async function idOf(app: TestApp, email: string): Promise<string> {
  const [row] = await rows<{ id: string }>(
    app.dataSource,
    'SELECT id FROM users WHERE email = $1',
    [email],
  );
  if (!row) throw new Error(`nobody is ${email}`);
  return row.id;
}
