import type { EnrolledUser, TestApp } from './app.js';
import { newAddress, type Answer } from './client.js';

/** An organization with its admin, and the token of its SCIM client. */
export interface ScimOrganization {
  readonly admin: EnrolledUser;
  readonly token: string;
  /** Sends a request to `/scim/v2` as the SCIM client, from an unused client IP address. */
  readonly scim: (method: string, path: string, body?: unknown) => Promise<Answer>;
}

/**
 * Creates an organization by HTTP requests: the first user of a domain enrolls, becomes the admin,
 * and creates a SCIM token.
 */
export async function foundOrganization(app: TestApp, domain: string): Promise<ScimOrganization> {
  const admin = await app.enrolled(`admin@${domain}`);
  const made = await admin.client.post('/api/v1/org/scim-tokens', { description: 'a test' });
  const token = made.json.token as string;
  return {
    admin,
    token,
    scim: (method, path, body) =>
      app.client().send(method, `/scim/v2${path}`, {
        address: newAddress(),
        ...(body === undefined ? {} : { body }),
        headers: { authorization: `Bearer ${token}`, origin: '' },
      }),
  };
}
