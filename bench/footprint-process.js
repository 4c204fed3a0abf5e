/**
 * The server of production (src/production.ts), except that it trusts one more root, so that
 * software keys can enroll. The clients and the identity provider are in another process. The
 * settings come from the environment, and the file of the root from the argument.
 */
import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { createApp } from '../dist/create-app.js';
import { trustAnchorFromPem } from '@svc/webauthn-policy';
import { PINNED_ROOTS } from '../dist/domain/keys/authenticators/attestation/trust-anchors.js';
import { loadConfig } from '../dist/platform/config/load-config.js';
import { EDGE_TIMEOUTS } from '../dist/platform/http/edge/edge-timeouts.js';
import { KMS_LIMITS } from '../dist/platform/kms/call-policy.js';
import { createLogger } from '../dist/platform/telemetry/pino-options.js';
import { prepareHeap } from '../dist/platform/heap/heap.js';

const [rootFile] = process.argv.slice(2);
const { config } = loadConfig(process.env);
const app = await createApp(config, createLogger(config.log), {
  composition: 'test',
  ports: { https: 443, http: 80 },
  hosts: [],
  timeouts: EDGE_TIMEOUTS,
  kmsLimits: KMS_LIMITS,
  trustAnchors: [...PINNED_ROOTS, trustAnchorFromPem(readFileSync(rootFile, 'utf8'))],
  pageScripts: [],
  modules: [],
});
await app.listen();
prepareHeap();
