import { generateKeyPairSync } from 'node:crypto';
import { writePrivateKey } from '@svc/openssh';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { startTestApp, type TestApp } from './app.js';
import { Client } from './client.js';
import { createTestDatabase } from './database.js';
import { freePort } from './free-port.js';
import { providerEnvironment, TEST_CLIENT } from './provider-environment.js';
import { idle, startReplicaFront, type FrontTarget } from './replica-front.js';

/** Environment variables of one replica, which replace those that all replicas have. */
export type Variables = Readonly<Record<string, string>>;

/** Replicas of one service, behind a proxy that sends each request to the next replica. */
export interface ReplicatedService {
  /** The public URL of the service, which is that of the proxy. */
  readonly baseUrl: string;
  /** One of the running replicas. A test uses its database connection and its Nest services. */
  readonly app: TestApp;
  client(): Client;
  /** Creates a security key whose attestation the replicas trust. */
  newKey(): SoftwareKey;
  /**
   * Replaces a replica as a rolling update does. First the new replica starts. Then the old one
   * gets no more requests, finishes the open ones, and stops.
   */
  replace(index: number, variables: Variables): Promise<void>;
  close(): Promise<void>;
}

interface Replica extends FrontTarget {
  readonly app: TestApp;
}

/**
 * Starts a replica for each set of variables, with one database, identity provider and SSH
 * authority.
 */
export async function startReplicatedService(
  ...replicas: readonly Variables[]
): Promise<ReplicatedService> {
  const database = await createTestDatabase();
  const port = await freePort();
  const baseUrl = `http://localhost:${port}`;
  const redirectUri = `${baseUrl}/oauth/callback`;
  const idp = await startDemoIdentityProvider({ ...TEST_CLIENT, redirectUri });
  const vendor = new SoftwareKey();
  const shared = {
    ...providerEnvironment(idp.issuer),
    SVC_BASE_URL: baseUrl,
    SVC_SSH_CA_KEY: writePrivateKey(generateKeyPairSync('ed25519').privateKey, 'ca'),
    RUST_LOG: 'warn',
  };
  const start = async (variables: Variables): Promise<Replica> => {
    const own = await freePort();
    const environment = { ...shared, SVC_LISTEN_ADDR: `[::]:${own}`, ...variables };
    const app = await startTestApp({ environment, database, attestationRoots: [vendor.rootPem] });
    return { app, port: own, inFlight: 0 };
  };
  const running: Replica[] = [];
  for (const variables of replicas) running.push(await start(variables));

  const front = await startReplicaFront(port, () => running);
  return {
    baseUrl,
    get app() {
      const [first] = running;
      if (!first) throw new Error('no replica is running');
      return first.app;
    },
    client: () => new Client(baseUrl),
    newKey: () => new SoftwareKey({ vendor }),
    async replace(index, variables) {
      const next = await start(variables);
      const [old] = running.splice(index, 1, next);
      if (!old) throw new Error(`there is no replica ${index}`);
      await idle(old);
      await old.app.close();
    },
    async close() {
      front.close();
      for (const { app } of running) await app.close();
      await idp.close();
      await database.drop();
    },
  };
}
