// Starts the built service in one process, as `node dist/main.js` does, and configures it by the
// environment variables. It also trusts the attestation root of a software key, whose PEM is the
// argument. Production trusts only the vendor's roots, so no test could log in to it. This script
// is plain JavaScript, because it runs on a read-only file system, on which nothing can be
// compiled.
import 'reflect-metadata';
import { trustAnchorFromPem } from '@svc/webauthn-policy';
import { createApp } from '../../dist/create-app.js';
import { PINNED_ROOTS } from '../../dist/domain/keys/authenticators/attestation/trust-anchors.js';
import { readConfiguration } from '../../dist/platform/config-sources/read-configuration.js';
import { prepareHeap } from '../../dist/platform/heap/heap.js';
import { EDGE_TIMEOUTS } from '../../dist/platform/http/edge/edge-timeouts.js';
import { KMS_LIMITS } from '../../dist/platform/kms/call-policy.js';
import { createLogger } from '../../dist/platform/telemetry/pino-options.js';

const [attestationRoot = ''] = process.argv.slice(2);
const { config, live } = await readConfiguration();
const app = await createApp(config, createLogger(config.log), {
  composition: 'test',
  ports: { https: 443, http: 80 },
  hosts: [],
  timeouts: EDGE_TIMEOUTS,
  kmsLimits: KMS_LIMITS,
  trustAnchors: [...PINNED_ROOTS, trustAnchorFromPem(attestationRoot)],
  pageScripts: [],
  live,
  modules: [],
});
await app.listen();
prepareHeap();
