// A script for runScript. It starts the built server, sends it one request from each of many client
// IP addresses, and prints its memory use. The server runs until standard input ends. The script is
// plain JavaScript, because a compiler in the process would use more memory than the server.
import { ThrottlerStorage } from '@nestjs/throttler';
import { createApp } from '../../dist/create-app.js';
import { loadConfig } from '../../dist/platform/config/load-config.js';
import { EDGE_TIMEOUTS } from '../../dist/platform/http/edge/edge-timeouts.js';
import { KMS_LIMITS } from '../../dist/platform/kms/call-policy.js';
import { prepareHeap } from '../../dist/platform/heap/heap.js';
import { createLogger } from '../../dist/platform/telemetry/pino-options.js';

const { environment, clients } = JSON.parse(process.argv[2]);
const { config } = loadConfig(environment);
const app = await createApp(config, createLogger(config.log, { write: () => undefined }), {
  composition: 'test',
  ports: { https: 443, http: 80 },
  hosts: [],
  timeouts: EDGE_TIMEOUTS,
  kmsLimits: KMS_LIMITS,
  trustAnchors: [],
  pageScripts: [],
  modules: [],
});
await app.listen();
prepareHeap(); // as production does

const buckets = app.nest.get(ThrottlerStorage);
let sharing = 0;
for (let n = 0; n < clients; n += 1) {
  const address = `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;
  const { totalHits } = await buckets.increment(`general ${address}`, 20_000, 20, 0, 'general');
  if (totalHits > 1) sharing += 1;
}
process.stdout.write(`${JSON.stringify({ residentBytes: process.memoryUsage.rss(), sharing })}\n`);
process.stdin.on('end', () => void app.close()).resume();
