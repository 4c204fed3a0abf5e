import { appendFileSync } from 'node:fs';
import { trustAnchorFromPem } from '@svc/webauthn-policy';
import { PINNED_ROOTS } from '../../../src/domain/keys/authenticators/attestation/trust-anchors.js';
import { createApp } from '../../../src/create-app.js';
import { loadConfig } from '../../../src/platform/config/load-config.js';
import { EDGE_TIMEOUTS } from '../../../src/platform/http/edge/edge-timeouts.js';
import { KMS_LIMITS } from '../../../src/platform/kms/call-policy.js';
import { createLogger } from '../../../src/platform/telemetry/pino-options.js';

// A script for runScript: one replica of the service, which also trusts the attestation root of the
// software keys. It writes its log to a file, and ends when its standard input ends.
const { environment, attestationRoot, logFile }: FailoverReplica = JSON.parse(
  process.argv[2] ?? '',
);
const { config } = loadConfig(environment);
const logger = createLogger(config.log, { write: (line) => appendFileSync(logFile, line) });
const app = await createApp(config, logger, {
  composition: 'test',
  ports: { https: 443, http: 80 },
  hosts: [],
  timeouts: EDGE_TIMEOUTS,
  kmsLimits: KMS_LIMITS,
  trustAnchors: [...PINNED_ROOTS, trustAnchorFromPem(attestationRoot)],
  pageScripts: [],
  modules: [],
});
await app.listen();
process.stdout.write('{}\n');
process.stdin.on('end', () => void app.close()).resume();

/** The argument of the script. */
export interface FailoverReplica {
  readonly environment: Readonly<Record<string, string>>;
  readonly attestationRoot: string;
  readonly logFile: string;
}
