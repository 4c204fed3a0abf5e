import { mkdir } from 'node:fs/promises';
import { percentile, table } from './measure.js';
import { startBenchServer } from './server.js';

/** Starts a server whose SSH authority and RSA key are in the stand-in for KMS. */
export async function startWithKms(folder, kms) {
  await mkdir(folder);
  return startBenchServer(folder, {
    SVC_SSH_CA_KMS_KEY_ID: kms.ed25519,
    SVC_OIDC_RSA_SIGNING_KMS_KEY_ID: kms.rsa,
    AWS_ENDPOINT_URL_KMS: kms.endpoint,
    AWS_REGION: 'eu-central-1',
    AWS_ACCESS_KEY_ID: 'bench',
    AWS_SECRET_ACCESS_KEY: 'bench',
  });
}

/**
 * Prints the latency that KMS adds, and the number of SQL statements for each credential on both
 * servers, for each pair of measurements.
 */
export function reportKms(pairs, roundTrip) {
  const rows = pairs.map(([local, inKms]) => ({
    what: inKms.what,
    ...addedLatency(local.turn, inKms.turn, 0.5),
    ...addedLatency(local.turn, inKms.turn, 0.99),
    'statements each': `${local.statements.toFixed(3)} → ${inKms.statements.toFixed(3)}`,
    'credentials a statement': `${(1 / local.statements).toFixed(1)} → ${(1 / inKms.statements).toFixed(1)}`,
  }));
  process.stdout.write(
    `\nAdded by KMS\n${table(rows)}\n\n` +
      `a key of this process → a key in KMS; KMS is a stand-in on loopback, which delays each answer by ${roundTrip} ms\n` +
      `statements each: database statements that record and audit credentials, over the credentials\n`,
  );
}

function addedLatency(local, inKms, share) {
  const [before, after] = [local, inKms].map(({ latencies }) => percentile(latencies, share));
  const name = `p${share * 100}`;
  return {
    [`${name} ms`]: `${before.toFixed(1)} → ${after.toFixed(1)}`,
    [`added ${name} ms`]: (after - before).toFixed(1),
    [`${name} ratio`]: (after / before).toFixed(2),
  };
}
