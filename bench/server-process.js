import 'reflect-metadata';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { createApp } from '../dist/create-app.js';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { trustAnchorFromPem } from '@svc/webauthn-policy';
import { PINNED_ROOTS } from '../dist/domain/keys/authenticators/attestation/trust-anchors.js';
import { loadConfig } from '../dist/platform/config/load-config.js';
import { EDGE_TIMEOUTS } from '../dist/platform/http/edge/edge-timeouts.js';
import { returnStartUpMemory } from '../dist/platform/heap/heap.js';
import { KMS_LIMITS } from '../dist/platform/kms/call-policy.js';
import { createLogger } from '../dist/platform/telemetry/pino-options.js';
import { enroll, publicKeyLine } from './enroll.js';

const [folder, people = '32'] = process.argv.slice(2);
const port = 20_000 + (process.pid % 20_000);
const baseUrl = `http://localhost:${port}`;

const client = { clientId: 'svc', clientSecret: 'the secret of the bench client' };
const idp = await startDemoIdentityProvider({
  ...client,
  redirectUri: `${baseUrl}/oauth/callback`,
});
const key = new SoftwareKey();
const { config } = loadConfig({
  SVC_BASE_URL: baseUrl,
  SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
  SVC_DATA_DIR: join(folder, 'data'),
  SVC_JWT_SECRET: 'a root secret that only the bench knows',
  SVC_TRUSTED_PROXIES: '127.0.0.0/8,::1/128',
  SVC_IDPS: 'demo',
  SVC_IDP_DEMO_TYPE: 'oidc',
  SVC_IDP_DEMO_ISSUER: idp.issuer,
  SVC_IDP_DEMO_CLIENT_ID: client.clientId,
  SVC_IDP_DEMO_CLIENT_SECRET: client.clientSecret,
  SVC_LOG_FORMAT: 'json',
  ...process.env,
});
// Every request is logged, as in production, so that the cost of logging is measured. The lines are
// dropped.
const logger = createLogger(config.log, { write: () => undefined });
const app = await createApp(config, logger, {
  composition: 'test',
  ports: { https: 443, http: 80 },
  hosts: [],
  timeouts: EDGE_TIMEOUTS,
  kmsLimits: KMS_LIMITS,
  trustAnchors: [...PINNED_ROOTS, trustAnchorFromPem(key.rootPem)],
  pageScripts: [],
  modules: [],
});
await app.listen();
returnStartUpMemory();
const tokens = [];
for (let person = 0; person < Number(people); person += 1) {
  tokens.push(await enroll({ baseUrl, key, person }));
}

process.on('message', ({ count }) => void answerCount(count));
process.on('disconnect', () => void stop());
const { host, user, database } = app.nest.get(DataSource).options.extra;
process.send({
  baseUrl,
  tokens,
  publicKeyLine: publicKeyLine(),
  database: { host, user, database },
});

async function answerCount(from) {
  const [{ n }] = await app.nest.get(DataSource).query(`SELECT count(*)::int AS n FROM ${from}`);
  process.send({ n });
}

async function stop() {
  await app.close();
  await idp.close();
}
