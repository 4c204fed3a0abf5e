import { newAddress } from '../../client.js';
import { registerApplication, signInTo } from '../../signed-in-application.js';
import { sessionOf, type Stage } from '../stage.js';

/** A public key for SSH certificates. Its private key does not exist any more. */
export const PUBLIC_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEQpkwZQBKoeTEj03QFYGUwCNJvMZkzZbkAOommRio1R grace@laptop';

/** Records examples of the operations on the user's own account, keys and sessions. */
export async function accountExamples(stage: Stage): Promise<string> {
  const { app } = stage;
  const grace = await stage.member('grace@octo.example');
  const from = grace.client;
  const exchanges = await stage.exchanges();
  const call: typeof exchanges.call = (name, asked) => exchanges.call(name, { from, ...asked });
  /**
   * Calls an operation that returns a list twice, so that `after` gets a real cursor as its
   * example.
   */
  const goOn = async (name: string) => {
    const { next } = (await exchanges.also(name, { from, parameters: { limit: 1 } })).json;
    await exchanges.also(name, { from, parameters: { limit: 1, after: next as string } });
  };

  await call('getSetup');
  await call('listKeys');
  const started = await call('startKeyRegistration', { body: { redirect_to: '/account/keys' } });
  const { state, publicKey } = started.json;
  const credential = app.newKey().create(publicKey, app.baseUrl);
  const body = { state, credential, name: 'Spare key' };
  const { key } = (await call('completeKeyRegistration', { body })).json;
  await call('renameKey', { parameters: { id: key.id }, body: { name: 'Desk' } });
  await call('removeKey', { parameters: { id: key.id } });

  const issue = () =>
    from.post('/v1/credentials/ssh', { public_key: PUBLIC_KEY }, { address: newAddress() });
  await issue();
  const { json: issued } = await issue();
  await call('listMyCredentials', { parameters: { limit: 1 } });
  await goOn('listMyCredentials');
  await call('revokeMyCertificate', { parameters: { serial: issued.serial } });
  await call('listMyActivity', { parameters: { limit: 1 } });
  await goOn('listMyActivity');
  await call('exportMyAccount');

  const application = await registerApplication(from, { name: 'Wiki' });
  await signInTo(app, from, application);
  await call('listMyApplications');
  await call('endApplicationAccess', { parameters: { client_id: application.clientId } });

  const other = app.client();
  await other.signIn('grace@octo.example');
  await other.logIn(grace.key, { address: newAddress() });
  const { sessions } = (await call('listSessions')).json as {
    sessions: { id: string; current: boolean }[];
  };
  const another = sessions.find(({ current }) => !current);
  await call('endSession', { parameters: { id: another?.id } });
  await call('endOtherSessions');
  await call('getSecurityContact', { authorization: sessionOf(from) });
  return exchanges.recorded();
}
