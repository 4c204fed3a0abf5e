import type { Stage } from '../stage.js';

/** Records examples of the operations on an organization's own issuer of tokens. */
export async function issuerExamples(stage: Stage): Promise<string> {
  const exchanges = await stage.exchanges();
  const { call } = exchanges.bound;
  await call('claimIssuer', { body: { label: 'octo', active: false } });
  await call('getIssuer');
  await call('changeIssuer', { body: { active: true } });
  await call('rotateIssuerKey', { body: { emergency: true } });
  await call('releaseIssuer');
  return exchanges.recorded();
}
