import 'reflect-metadata';
import cluster from 'node:cluster';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { createApp } from '../dist/create-app.js';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { trustAnchorFromPem } from '@svc/webauthn-policy';
import { PINNED_ROOTS } from '../dist/domain/keys/authenticators/attestation/trust-anchors.js';
import { loadConfig } from '../dist/platform/config/load-config.js';
import { EDGE_TIMEOUTS } from '../dist/platform/http/edge/edge-timeouts.js';
import { prepareHeap } from '../dist/platform/heap/heap.js';
import { KMS_LIMITS } from '../dist/platform/kms/call-policy.js';
import { createLogger } from '../dist/platform/telemetry/pino-options.js';
import { ServiceMetrics } from '../dist/platform/telemetry/service-metrics.service.js';
import { runWorkers } from '../dist/workers/primary.js';
import { receiveTask } from '../dist/workers/worker.js';
import { enroll, publicKeyLine } from './enroll.js';

// The first argument is the folder of the data, or in a worker the root of the software key in PEM.
const [first, people = '32'] = process.argv.slice(2);

await (cluster.isWorker ? work() : begin());

/** Serves as one of several workers, which the primary process starts. */
async function work() {
  const worker = await receiveTask();
  const app = await serve(worker.read.config, first, worker);
  worker.serve(app.nest.get(ServiceMetrics));
}

async function begin() {
  const port = 20_000 + (process.pid % 12_000); // below the ports of outgoing connections
  const baseUrl = `http://localhost:${port}`;
  const client = { clientId: 'svc', clientSecret: 'the secret of the bench client' };
  const idp = await startDemoIdentityProvider({
    ...client,
    redirectUri: `${baseUrl}/oauth/callback`,
  });
  const key = new SoftwareKey();
  const environment = {
    SVC_BASE_URL: baseUrl,
    SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
    SVC_DATA_DIR: join(first, 'data'),
    SVC_JWT_SECRET: 'a root secret that only the bench knows',
    SVC_TRUSTED_PROXIES: '127.0.0.0/8,::1/128',
    SVC_IDPS: 'demo',
    SVC_IDP_DEMO_TYPE: 'oidc',
    SVC_IDP_DEMO_ISSUER: idp.issuer,
    SVC_IDP_DEMO_CLIENT_ID: client.clientId,
    SVC_IDP_DEMO_CLIENT_SECRET: client.clientSecret,
    SVC_LOG_FORMAT: 'json',
    ...process.env,
  };
  const { config } = loadConfig(environment);
  if (config.workers > 1) return beginWorkers({ config, environment, baseUrl, key });
  const app = await serve(config, key.rootPem);
  process.on('message', ({ count }) => void answerCount(app, count));
  process.on('disconnect', () => void stop(app, idp));
  const { host, user, database } = app.nest.get(DataSource).options.extra;
  await tellReady({ baseUrl, key, database: { host, user, database } });
}

/** Starts the workers, and tells the benchmark when all of them serve. */
async function beginWorkers({ config, environment, baseUrl, key }) {
  const sources = { environment, document: undefined };
  const log = { ...config.log, filter: 'error' };
  void runWorkers({ config: { ...config, log }, warnings: [], sources }, 'test', [key.rootPem]);
  const serving = new Set();
  await new Promise((resolve) => {
    cluster.on('message', (worker, { kind }) => {
      if (kind === 'serves' && serving.add(worker.id).size === config.workers) resolve();
    });
  });
  process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  await tellReady({ baseUrl, key });
}

/**
 * Starts the service in this process. Every request is logged, as in production, so that the cost
 * of logging is measured. The lines are dropped.
 */
async function serve(config, rootPem, worker) {
  const logger = createLogger(config.log, { write: () => undefined });
  const app = await createApp(config, logger, {
    composition: 'test',
    ports: { https: 443, http: 80 },
    hosts: [],
    timeouts: EDGE_TIMEOUTS,
    kmsLimits: KMS_LIMITS,
    trustAnchors: [...PINNED_ROOTS, trustAnchorFromPem(rootPem)],
    pageScripts: [],
    modules: [],
    worker,
  });
  await app.listen();
  prepareHeap();
  return app;
}

/**
 * Enrolls a key for each person. Then sends the URL of the server, the tokens of the sessions, an
 * SSH public key and the settings of the database to the benchmark.
 */
async function tellReady({ baseUrl, key, database }) {
  const tokens = [];
  for (let person = 0; person < Number(people); person += 1) {
    tokens.push(await enroll({ baseUrl, key, person }));
  }
  process.send({ baseUrl, tokens, publicKeyLine: publicKeyLine(), database });
}

async function answerCount(app, from) {
  const [{ n }] = await app.nest.get(DataSource).query(`SELECT count(*)::int AS n FROM ${from}`);
  process.send({ n });
}

async function stop(app, idp) {
  await app.close();
  await idp.close();
}
