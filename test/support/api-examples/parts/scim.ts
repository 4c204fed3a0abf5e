import type { Stage } from '../stage.js';

const USER = 'urn:ietf:params:scim:schemas:core:2.0:User';
const GROUP = 'urn:ietf:params:scim:schemas:core:2.0:Group';
const messages = (name: string) => [`urn:ietf:params:scim:api:messages:2.0:${name}`];

/** Records the operations of SCIM. */
export async function scimExamples(stage: Stage): Promise<string> {
  const exchanges = await stage.exchanges();
  const authorization = `Bearer ${stage.organization.token}`;
  const call: typeof exchanges.call = (name, asked) =>
    exchanges.call(name, { authorization, ...asked });
  const userId = await users(call);
  await groups(call, userId);
  await call('listScimResources', { parameters: { filter: 'displayName sw "Grace"' } });
  await call('searchScimResources', {
    body: { schemas: messages('SearchRequest'), filter: 'displayName sw "Grace"', count: 10 },
  });
  await call('runScimBulk', {
    body: {
      schemas: messages('BulkRequest'),
      Operations: [
        {
          method: 'POST',
          path: '/Users',
          bulkId: 'one',
          data: { schemas: [USER], userName: 'heidi@octo.example' },
        },
      ],
    },
  });
  await call('removeScimUser', { parameters: { id: userId } });
  await call('getScimConfig');
  await call('listScimSchemas');
  await call('getScimSchema', { parameters: { id: GROUP } });
  await call('listScimResourceTypes');
  await call('getScimResourceType', { parameters: { id: 'User' } });
  return exchanges.recorded();
}

type Call = Awaited<ReturnType<Stage['exchanges']>>['call'];

async function users(call: Call): Promise<string> {
  const body = {
    schemas: [USER],
    userName: 'grace.hopper@octo.example',
    displayName: 'Grace Hopper',
    name: { givenName: 'Grace', familyName: 'Hopper' },
    emails: [{ value: 'grace.hopper@octo.example', type: 'work', primary: true }],
    active: true,
  };
  const made = await call('createScimUser', { body });
  const id = made.json.id as string;
  const filter = 'userName eq "grace.hopper@octo.example"';
  await call('listScimUsers', { parameters: { filter, count: 10 } });
  await call('searchScimUsers', { body: { schemas: messages('SearchRequest'), filter } });
  await call('getScimUser', { parameters: { id } });
  await call('replaceScimUser', {
    parameters: { id, 'if-match': made.headers.get('etag') },
    body: { ...body, title: 'Rear admiral' },
  });
  await call('patchScimUser', {
    parameters: { id },
    body: {
      schemas: messages('PatchOp'),
      Operations: [{ op: 'replace', path: 'displayName', value: 'Grace M. Hopper' }],
    },
  });
  return id;
}

async function groups(call: Call, userId: string): Promise<void> {
  const body = {
    schemas: [GROUP],
    displayName: 'Compilers',
    members: [{ value: userId }],
  };
  const id = (await call('createScimGroup', { body })).json.id as string;
  const filter = 'displayName eq "Compilers"';
  await call('listScimGroups', { parameters: { filter, count: 10 } });
  await call('searchScimGroups', { body: { schemas: messages('SearchRequest'), filter } });
  await call('getScimGroup', { parameters: { id } });
  await call('replaceScimGroup', { parameters: { id }, body });
  await call('patchScimGroup', {
    parameters: { id, attributes: 'displayName' },
    body: {
      schemas: messages('PatchOp'),
      Operations: [{ op: 'replace', path: 'displayName', value: 'Compiler team' }],
    },
  });
  await call('removeScimGroup', { parameters: { id } });
}
