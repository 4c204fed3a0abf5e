import { newAddress } from '../../client.js';
import { idOf, orgApi } from '../../org-api.js';
import { searchMembers } from '../searches.js';
import type { Stage } from '../stage.js';
import { PUBLIC_KEY } from './account.js';

/** Records examples of the operations on the members of an organization. */
export async function memberExamples(stage: Stage): Promise<string> {
  const bob = await stage.member('bob@octo.example');
  const { app } = stage;
  await bob.client.post(
    '/v1/credentials/ssh',
    { public_key: PUBLIC_KEY },
    { address: newAddress() },
  );
  const started = (await bob.client.post('/v1/keys/register/start', {})).json;
  const credential = app.newKey().create(started.publicKey, app.baseUrl);
  await bob.client.post('/v1/keys/register/complete', { state: started.state, credential });
  await bob.client.copy().logIn(bob.key, { address: newAddress() });
  const exchanges = await stage.exchanges();
  const { call, also } = exchanges.bound;
  const id = await idOf(app, 'bob@octo.example');
  const act: typeof call = async (name, asked) => {
    const { headers } = await orgApi(stage.admin, 'GET', `/members/${id}`);
    const parameters = { id, 'if-match': headers.get('etag'), ...asked?.parameters };
    return call(name, { ...asked, parameters });
  };
  await call('listMembers', { parameters: { q: 'bob', limit: 1 } });
  await call('listMemberKeys', { parameters: { q: 'bob', limit: 1 } });
  await searchMembers(also, 'listMembers', { sort: 'address' });
  await searchMembers(also, 'listMemberKeys');
  const shown = await call('getMember', { parameters: { id } });
  await act('promoteMember');
  await act('demoteMember');
  const { sessions, security_keys: keys } = shown.json;
  await act('endMemberSession', { parameters: { session_id: sessions[0].id as string } });
  await act('removeMemberKey', { parameters: { key_id: keys.at(-1).id as string } });
  await act('revokeMemberCredentials');
  await act('giveEnrollmentPass');
  await call('getEnrollmentPass', { parameters: { id } });
  await act('withdrawEnrollmentPass');
  await act('liftEnrollmentPassDemand');
  await act('deactivateMember');
  await act('activateMember');
  await act('removeMember', { parameters: { prefer: 'return=representation' } });
  await call('readmitMember', { body: { email: 'bob@octo.example' } });
  await ties(stage, call);
  return exchanges.recorded();
}

type Call = Awaited<ReturnType<Stage['exchanges']>>['bound']['call'];

/**
 * Records two operations of an admin. One parts a twin (a member who signed in with the address of
 * a SCIM record) from the record. The other gives a linked record an address of its own.
 */
async function ties({ app, admin, organization: { scim } }: Stage, call: Call): Promise<void> {
  await orgApi(admin, 'PATCH', '', { membership: 'open' });
  await app.enrolled('twin@octo.example');
  const work = (value: string) => [{ value, type: 'work', primary: true }];
  const robert = (await scim('POST', '/Users', { userName: 'robert@octo.example' })).json;
  await scim('PUT', `/Users/${robert.id}`, {
    userName: 'robert@octo.example',
    emails: work('twin@octo.example'),
  });
  const asShown = async (id: string) => {
    const { headers } = await orgApi(admin, 'GET', `/members/${id}`);
    return { parameters: { id, 'if-match': headers.get('etag') } };
  };
  await call('partMember', await asShown(await idOf(app, 'twin@octo.example')));
  await scim('POST', '/Users', { userName: 'adm-carol', emails: work('carol@octo.example') });
  await app.enrolled('carol@octo.example');
  const own = await scim('POST', '/Users', {
    userName: 'carol@octo.example',
    emails: work('carol@octo.example'),
  });
  await call('giveAddress', await asShown(own.json.id as string));
  await orgApi(admin, 'PATCH', '', { membership: 'scim_only' });
}
