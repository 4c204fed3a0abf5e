import { rows } from '../../rows.js';
import { idOf, orgApi } from '../../org-api.js';
import { searchEvents } from '../searches.js';
import type { Stage } from '../stage.js';

/**
 * Records examples of the operations on an organization: settings, domains, providers, secrets,
 * audit log.
 */
export async function organizationExamples(stage: Stage): Promise<string> {
  const exchanges = await stage.exchanges();
  const { call, also } = exchanges.bound;
  const shown = await call('getOrganization');
  await call('changeOrganization', {
    parameters: { 'if-match': shown.headers.get('etag') },
    body: { name: 'Octo', aws_roles: 'any' },
  });
  const { record } = (await call('addDomain', { body: { domain: 'octo.test' } })).json;
  stage.dns.replies.set(record.name as string, { texts: [record.value as string] });
  await call('verifyDomain', { parameters: { domain: 'octo.test' } });
  await call('listDomains');
  await call('removeDomain', {
    parameters: { domain: 'octo.test', prefer: 'return=representation' },
  });
  const allowed = await call('allowProvider', { body: { provider: 'corp' } });
  await call('listProviders');
  await call('withdrawProvider', { parameters: { id: allowed.json.id as string } });
  await secretsToConfirm(stage, call);
  await auditLog(stage, call);
  const email = 'admin@octo.example';
  await searchEvents(also, 'listAuditEvents', { id: await idOf(stage.app, email), email });
  exchanges.learn('newest', 'newest');
  await also('listAuditCheckpoints', { parameters: { after: 'newest' } });
  return exchanges.recorded();
}

type Call = Awaited<ReturnType<Stage['exchanges']>>['bound']['call'];

async function secretsToConfirm({ app, admin }: Stage, call: Call): Promise<void> {
  const { tokens } = (await orgApi(admin, 'GET', '/scim-tokens')).json;
  await rows(
    app.dataSource,
    `INSERT INTO secrets_to_confirm (id, org_id, secret, secret_id, name, act, is_lost, happened_at)
     SELECT gen_random_uuid(), org_id, 'scim_token', $1, 'a test', 'made', false, now()
     FROM users WHERE email = 'admin@octo.example'`,
    [tokens[0].id],
  );
  const { secrets } = (await call('listSecretsToConfirm')).json;
  await call('confirmSecret', { parameters: { id: secrets[0].id as string } });
}

async function auditLog({ seal }: Stage, call: Call): Promise<void> {
  await call('listAuditEvents', { parameters: { type: 'org_domain_removed', limit: 1 } });
  const saved = await call('saveAuditQuestion', {
    body: { name: 'Logins of last week', type: 'login_success', period: 'last_week' },
  });
  await call('listAuditQuestions');
  await call('removeAuditQuestion', { parameters: { id: saved.json.id as string } });
  await seal.seal();
  const listed = await call('listAuditCheckpoints', { parameters: { limit: 1 } });
  const [{ epoch, size }] = listed.json.checkpoints as [{ epoch: string; size: number }];
  await call('proveAuditCheckpoint', { parameters: { epoch, from: 1, to: size } });
}
