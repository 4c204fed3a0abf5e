import { newAddress } from '../../client.js';
import { idOf } from '../../org-api.js';
import { orgApi } from '../../org-api.js';
import type { Stage } from '../stage.js';
import { PUBLIC_KEY } from './account.js';

/** Records the operations of the members of an organization. */
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
  const { call } = exchanges.bound;
  const id = await idOf(app, 'bob@octo.example');
  await call('listMembers', { parameters: { q: 'bob', limit: 1 } });
  await call('listMemberKeys', { parameters: { q: 'bob', limit: 1 } });
  const shown = await call('getMember', { parameters: { id } });
  await call('promoteMember', { parameters: { id, 'if-match': shown.headers.get('etag') } });
  await call('demoteMember', { parameters: { id } });
  const { sessions, security_keys: keys } = shown.json;
  await call('endMemberSession', { parameters: { id, session_id: sessions[0].id as string } });
  await call('removeMemberKey', { parameters: { id, key_id: keys.at(-1).id as string } });
  await call('revokeMemberCredentials', { parameters: { id } });
  await call('giveEnrollmentPass', { parameters: { id } });
  await call('getEnrollmentPass', { parameters: { id } });
  await call('withdrawEnrollmentPass', { parameters: { id } });
  await call('liftEnrollmentPassDemand', { parameters: { id } });
  await call('deactivateMember', { parameters: { id } });
  await call('activateMember', { parameters: { id } });
  await call('removeMember', { parameters: { id, prefer: 'return=representation' } });
  await call('readmitMember', { body: { email: 'bob@octo.example' } });
  await ties(stage, call);
  return exchanges.recorded();
}

type Call = Awaited<ReturnType<Stage['exchanges']>>['bound']['call'];

/** Parts a twin of a SCIM record, and gives a linked record its address. */
async function ties({ app, admin, organization: { scim } }: Stage, call: Call): Promise<void> {
  await orgApi(admin, 'PATCH', '', { membership: 'open' });
  await app.enrolled('twin@octo.example');
  const work = (value: string) => [{ value, type: 'work', primary: true }];
  const robert = (await scim('POST', '/Users', { userName: 'robert@octo.example' })).json;
  await scim('PUT', `/Users/${robert.id}`, {
    userName: 'robert@octo.example',
    emails: work('twin@octo.example'),
  });
  await call('partMember', { parameters: { id: await idOf(app, 'twin@octo.example') } });
  await scim('POST', '/Users', { userName: 'adm-carol', emails: work('carol@octo.example') });
  await app.enrolled('carol@octo.example');
  const own = await scim('POST', '/Users', {
    userName: 'carol@octo.example',
    emails: work('carol@octo.example'),
  });
  await call('giveAddress', { parameters: { id: own.json.id as string } });
  await orgApi(admin, 'PATCH', '', { membership: 'scim_only' });
}
