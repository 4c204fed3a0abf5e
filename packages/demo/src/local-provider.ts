import { systemRandom } from '@svc/stand-ins/clock';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { freePort } from '@svc/stand-ins/loopback-server';
import type { DemoData } from './demo-data.js';
import { READY_PEOPLE } from './people/people.js';

/**
 * The demo's own identity provider, and the service's registration at it. Both exist only while the
 * process runs.
 */
export interface LocalProvider {
  readonly port: number;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/**
 * Chooses the port of the identity provider before it starts: the port of earlier runs if it is
 * free, and otherwise any free port. The port is a part of the issuer, to which users and
 * organizations belong.
 */
export async function chooseLocalProvider({
  identityProviderPort,
}: Pick<DemoData, 'identityProviderPort'>): Promise<LocalProvider> {
  const port = await freePort(identityProviderPort).catch(() => freePort(0));
  return {
    port,
    issuer: `http://127.0.0.1:${port}`,
    clientId: 'svc-demo',
    clientSecret: systemRandom.token(),
  };
}

/** Starts the identity provider, whose sign-in page offers the prepared people as buttons. */
export function startLocalProvider(provider: LocalProvider, redirectUri: string) {
  return startDemoIdentityProvider({ ...provider, redirectUri, people: READY_PEOPLE });
}
