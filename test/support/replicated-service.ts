import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { writePrivateKey } from '../../src/domain/ssh-certificates/openssh/private-key.js';
import { startDemoIdentityProvider } from '../../src/demo/identity-provider/identity-provider.js';
import { SoftwareKey } from '../../src/demo/software-key/software-key.js';
import { startTestApp, type TestApp } from './app.js';
import { Client } from './client.js';
import { createTestDatabase } from './database.js';
import { freePort } from './free-port.js';
import { providerEnvironment, TEST_CLIENT } from './provider-environment.js';

/** Variables of one replica over those of the service. */
export type Variables = Readonly<Record<string, string>>;

/** Replicas of one service behind a proxy that sends each request to the next one of them. */
export interface ReplicatedService {
  /** The public address: that of the proxy. */
  readonly baseUrl: string;
  /** One of the running replicas, for its database and services. */
  readonly app: TestApp;
  client(): Client;
  /** Creates a security key whose attestation the replicas trust. */
  newKey(): SoftwareKey;
  /**
   * Replaces a replica as a rolling update does: the new one serves before the old one gets no more requests, ends what it has
   * and stops.
   */
  replace(index: number, variables: Variables): Promise<void>;
  close(): Promise<void>;
}

interface Replica {
  readonly app: TestApp;
  readonly port: number;
  inFlight: number;
}

/** Starts a replica for each set of variables, with one database, identity provider and SSH authority. */
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

  let turn = 0;
  const front = createServer((incoming, outgoing) => {
    turn += 1;
    const replica = running[turn % running.length];
    if (replica) forward(replica, incoming, outgoing);
  });
  front.listen(port, 'localhost');
  await once(front, 'listening');
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
      front.closeAllConnections();
      front.close();
      for (const { app } of running) await app.close();
      await idp.close();
      await database.drop();
    },
  };
}

/** Resolves when a replica has no request any more. */
async function idle(replica: Replica): Promise<void> {
  while (replica.inFlight > 0) await delay(10);
}

/** Forwards a request with its own Host header, on a connection of its own. */
function forward(replica: Replica, incoming: IncomingMessage, outgoing: ServerResponse): void {
  replica.inFlight += 1;
  outgoing.on('close', () => {
    replica.inFlight -= 1;
  });
  const onward = request({
    port: replica.port,
    host: 'localhost',
    agent: false,
    method: incoming.method,
    path: incoming.url,
    headers: incoming.headers,
  });
  onward.on('response', (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on('error', (error) => outgoing.writeHead(502).end(String(error)));
  incoming.pipe(onward);
}
