import { addApplication, addWebApplication } from '../../applications.js';
import { CALLBACK, newCodeFields, newPkce } from '../../oauth-flow.js';
import type { Stage } from '../stage.js';

const NOBODY = '';

/** Records examples of the OAuth operations and of the metadata documents. */
export async function oauthExamples(stage: Stage): Promise<string> {
  const { app, admin } = stage;
  const owner = 'admin@octo.example';
  const web = await addWebApplication(app, owner);
  const native = await addApplication(
    app,
    {
      client_name: 'Terminal',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: [
        'urn:ietf:params:oauth:grant-type:device_code',
        'urn:svc:params:oauth:grant-type:fido2',
      ],
      response_types: [],
      redirect_uris: [],
    },
    { owner },
  );
  const exchanges = await stage.exchanges();
  exchanges.learn(web.clientId, 'wiki');
  exchanges.learn(native.clientId, 'terminal');
  const call: typeof exchanges.call = (name, asked) =>
    exchanges.call(name, { authorization: NOBODY, ...asked });
  const proof = { client_id: web.clientId, client_secret: web.clientSecret };

  await call('pushAuthorizationRequest', {
    body: {
      ...proof,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid email',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
    },
  });
  const fields = await newCodeFields(admin, web.clientId);
  const tokens = (await call('issueToken', { body: { ...fields, ...proof } })).json;
  const authorization = `Bearer ${tokens.access_token as string}`;
  await call('getUserClaims', { authorization });
  await call('postUserClaims', { body: { access_token: tokens.access_token as string } });
  const token = tokens.access_token as string;
  await call('introspectToken', { body: { token, ...proof } });
  await call('revokeToken', { body: { token, ...proof } });
  await call('createDeviceCode', { body: { client_id: native.clientId, scope: 'openid' } });
  await call('createFido2Challenge', { body: { client_id: native.clientId } });
  await registration(call);
  await metadata(call);
  return exchanges.recorded();
}

type Call = Awaited<ReturnType<Stage['exchanges']>>['call'];

async function registration(call: Call): Promise<void> {
  const body = { client_name: 'Assistant', redirect_uris: [CALLBACK] };
  const made = (await call('registerClient', { body })).json;
  const parameters = { clientId: made.client_id as string };
  const authorization = `Bearer ${made.registration_access_token as string}`;
  await call('getClient', { parameters, authorization });
  const replaced = await call('replaceClient', {
    parameters,
    authorization,
    body: { client_id: made.client_id as string, ...body, client_name: 'Assistant 2' },
  });
  // Each change of a registration returns a new registration access token, which replaces the one
  // before.
  const next = `Bearer ${replaced.json.registration_access_token as string}`;
  await call('removeClient', { parameters, authorization: next });
}

async function metadata(call: Call): Promise<void> {
  for (const name of [
    'getOpenIdConfiguration',
    'getAuthorizationServerMetadata',
    'getProtectedResourceMetadata',
    'getSignalsConfiguration',
    'getSignalsResourceMetadata',
    'getPublicKeys',
  ]) {
    await call(name);
  }
}
