import { API_SCOPES } from '#domain/directory/api-tokens/api-tokens.repository.js';
import { TEST_NETWORKS } from '../../api-tokens.js';
import { idOf, orgApi } from '../../org-api.js';
import { addTarget } from '../../targets.js';
import { searchEvents, searchMembers } from '../searches.js';
import type { Stage } from '../stage.js';

/**
 * Records examples of the operations on SCIM tokens and API tokens. Also records the operations
 * that programs call with an API token.
 */
export async function tokenExamples(stage: Stage): Promise<string> {
  const { admin } = stage;
  await stage.member('trudy@octo.example');
  const exchanges = await stage.exchanges();
  const { call, also } = exchanges.bound;
  const made = await call('createScimToken', {
    body: { description: 'Okta', expires_in_days: 90 },
  });
  await call('listScimTokens');
  const created = await call('createApiToken', {
    body: {
      name: 'Nightly job',
      scopes: [...API_SCOPES],
      expires_in_days: 90,
      allowed_cidrs: [...TEST_NETWORKS],
      scim_token_ids: [made.json.id as string],
    },
  });
  const rotated = await call('rotateApiToken', {
    parameters: { id: created.json.id as string },
    body: { overlap_hours: 24 },
  });
  await call('listApiTokens');
  const authorization = `Bearer ${rotated.json.token as string}`;
  const asProgram: typeof call = (name, asked) => call(name, { authorization, ...asked });

  const alsoAsProgram: typeof also = (name, asked) => also(name, { authorization, ...asked });
  const target = await addTarget(stage.app.dataSource, 'admin@octo.example', {
    name: 'deploy',
    roleArn: 'arn:aws:iam::123456789012:role/deploy',
  });
  await asProgram('listMembersForProgram', { parameters: { q: 'admin', limit: 1 } });
  await searchMembers(alsoAsProgram, 'listMembersForProgram', { sort: 'address' });
  await asProgram('listTargetsForProgram', { parameters: { q: 'deploy', limit: 1 } });
  const targets = await alsoAsProgram('listTargetsForProgram', { parameters: { limit: 1 } });
  await alsoAsProgram('listTargetsForProgram', {
    parameters: { after: targets.json.next as string },
  });
  await alsoAsProgram('listTargetsForProgram', { parameters: { kind: 'aws_role' } });
  await asProgram('getTargetForProgram', { parameters: { kind: 'aws_role', id: target } });
  const application = { name: 'Shop', type: 'web', redirect_uris: ['https://shop.example.com/in'] };
  const { client_id: id } = (await admin.post('/api/v1/applications', application)).json;
  await asProgram('listApplicationsForProgram');
  await alsoAsProgram('listApplicationsForProgram', { parameters: { after: id } });
  await asProgram('getApplicationForProgram', { parameters: { id } });
  await asProgram('listAuditEventsForProgram', {
    parameters: { order: 'asc', type: 'api_token_created', limit: 1 },
  });
  const email = 'admin@octo.example';
  const user = { id: await idOf(stage.app, email), email };
  await searchEvents(alsoAsProgram, 'listAuditEventsForProgram', user);
  const newest = await asProgram('rotateScimToken', {
    parameters: { id: made.json.id as string },
    body: { overlap_hours: 24 },
  });
  await call('revokeScimToken', { parameters: { id: newest.json.id as string } });
  await call('revokeApiToken', { parameters: { id: rotated.json.id as string } });
  await orgApi(admin, 'DELETE', `/api-tokens/${created.json.id as string}`);
  return exchanges.recorded();
}
