import type { Asked } from '../exchanges.js';
import type { Stage } from '../stage.js';

const USER = 'urn:ietf:params:scim:schemas:core:2.0:User';
const GROUP = 'urn:ietf:params:scim:schemas:core:2.0:Group';
const messages = (name: string) => [`urn:ietf:params:scim:api:messages:2.0:${name}`];

/** Records examples of the operations of SCIM. */
export async function scimExamples(stage: Stage): Promise<string> {
  const exchanges = await stage.exchanges();
  const authorization = `Bearer ${stage.organization.token}`;
  const call: typeof exchanges.call = (name, asked) =>
    exchanges.call(name, { authorization, ...asked });
  const also: typeof exchanges.also = (name, asked) =>
    exchanges.also(name, { authorization, ...asked });
  const userId = await users({ call, also });
  await groups({ call, also }, userId);
  await call('listScimResources', { parameters: { filter: 'displayName sw "Grace"' } });
  await search(also, 'listScimResources', 'displayName');
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
  const { headers } = await call('getScimUser', { parameters: { id: userId } });
  const parameters = { id: userId, 'if-match': headers.get('etag') };
  await call('removeScimUser', { parameters });
  await call('getScimConfig');
  await call('listScimSchemas');
  await call('getScimSchema', { parameters: { id: GROUP } });
  await call('listScimResourceTypes');
  await call('getScimResourceType', { parameters: { id: 'User' } });
  return exchanges.recorded();
}

type Bound = Awaited<ReturnType<Stage['exchanges']>>['bound'];

/**
 * The two parameters that choose the attributes in a response. They exclude each other, so each
 * needs a request of its own.
 */
const CHOICES: readonly Readonly<Record<string, string>>[] = [
  { attributes: 'displayName' },
  { excludedAttributes: 'meta' },
];

/** Records the query parameters of an operation that returns a list of resources. */
async function search(also: Bound['also'], name: string, sortBy: string): Promise<void> {
  const sorted = { sortBy, sortOrder: 'ascending', startIndex: 1, count: 1 };
  for (const choice of CHOICES) await also(name, { parameters: { ...sorted, ...choice } });
}

/**
 * Calls an operation that returns a list twice, so that `cursor` gets a real cursor as its example.
 */
async function goOn(also: Bound['also'], name: string): Promise<void> {
  const page = await also(name, { parameters: { cursor: '', count: 1 } });
  await also(name, { parameters: { cursor: page.json.nextCursor as string, count: 1 } });
}

/** Records the query parameters of an operation that returns one resource. */
async function choose({ also }: Bound, name: string, ...asked: readonly Asked[]): Promise<void> {
  for (const [n, choice] of CHOICES.entries()) {
    const one = asked[n] ?? asked[0] ?? {};
    await also(name, { ...one, parameters: { ...one.parameters, ...choice } });
  }
}

async function users(bound: Bound): Promise<string> {
  const { call, also } = bound;
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
  const named = (userName: string) => ({ body: { schemas: [USER], userName } });
  await choose(bound, 'createScimUser', named('ivan@octo.example'), named('judy@octo.example'));
  const filter = 'userName eq "grace.hopper@octo.example"';
  await call('listScimUsers', { parameters: { filter, count: 10 } });
  await search(also, 'listScimUsers', 'userName');
  await goOn(also, 'listScimUsers');
  await call('searchScimUsers', { body: { schemas: messages('SearchRequest'), filter } });
  await call('getScimUser', { parameters: { id } });
  await choose(bound, 'getScimUser', { parameters: { id } });
  await also('getScimUser', { parameters: { id, 'if-none-match': made.headers.get('etag') } });
  const replaced = { ...body, title: 'Rear admiral' };
  const { headers } = await call('replaceScimUser', {
    parameters: { id, 'if-match': made.headers.get('etag') },
    body: replaced,
  });
  await choose(bound, 'replaceScimUser', { parameters: { id }, body: replaced });
  const change = {
    schemas: messages('PatchOp'),
    Operations: [{ op: 'replace', path: 'displayName', value: 'Grace M. Hopper' }],
  };
  await call('patchScimUser', {
    parameters: { id, 'if-match': headers.get('etag') },
    body: change,
  });
  await choose(bound, 'patchScimUser', { parameters: { id }, body: change });
  return id;
}

async function groups(bound: Bound, userId: string): Promise<void> {
  const { call, also } = bound;
  const body = {
    schemas: [GROUP],
    displayName: 'Compilers',
    members: [{ value: userId }],
  };
  const id = (await call('createScimGroup', { body })).json.id as string;
  const named = (displayName: string) => ({ body: { schemas: [GROUP], displayName } });
  await choose(bound, 'createScimGroup', named('Loaders'), named('Linkers'));
  const filter = 'displayName eq "Compilers"';
  await call('listScimGroups', { parameters: { filter, count: 10 } });
  await search(also, 'listScimGroups', 'displayName');
  await goOn(also, 'listScimGroups');
  await call('searchScimGroups', { body: { schemas: messages('SearchRequest'), filter } });
  const shown = await call('getScimGroup', { parameters: { id } });
  await choose(bound, 'getScimGroup', { parameters: { id } });
  const tag = shown.headers.get('etag');
  await also('getScimGroup', { parameters: { id, 'if-none-match': tag } });
  await call('replaceScimGroup', { parameters: { id, 'if-match': tag }, body });
  await choose(bound, 'replaceScimGroup', { parameters: { id }, body });
  const change = {
    schemas: messages('PatchOp'),
    Operations: [{ op: 'replace', path: 'displayName', value: 'Compiler team' }],
  };
  const present = await call('getScimGroup', { parameters: { id } });
  const changed = await call('patchScimGroup', {
    parameters: { id, attributes: 'displayName', 'if-match': present.headers.get('etag') },
    body: change,
  });
  await choose(bound, 'patchScimGroup', { parameters: { id }, body: change });
  await call('removeScimGroup', {
    parameters: { id, 'if-match': changed.headers.get('etag') },
  });
}
