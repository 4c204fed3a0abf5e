import { newAddress } from '../../client.js';
import { rows } from '../../rows.js';
import { addTarget } from '../../targets.js';
import { sessionOf, type Stage } from '../stage.js';
import { PUBLIC_KEY } from './account.js';

const ROLE = 'arn:aws:iam::123456789012:role/deploy';

/** Records examples of the operations on SSH certificates, AWS tokens and GitHub tokens. */
export async function credentialExamples(stage: Stage): Promise<string> {
  const exchanges = await stage.exchanges();
  // keeps this key as it is, because it is public and the same in each run
  exchanges.learn(PUBLIC_KEY, PUBLIC_KEY);
  const email = 'admin@octo.example';
  await addTarget(stage.app.dataSource, email, {
    name: 'web',
    hosts: ['*.web.octo.example'],
    logins: ['deploy'],
  });
  await exchanges.call('createSshChallenge');
  const asked = { public_key: PUBLIC_KEY, ttl_seconds: 3600 };
  const { serial } = (await exchanges.call('issueSshCertificate', { body: asked })).json;
  await exchanges.call('getSshAuthority', { accept: 'application/json' });
  const list = await exchanges.call('getRevocationList', { accept: 'application/json' });
  await exchanges.also('getRevocationList', {
    accept: 'application/json',
    parameters: { 'if-none-match': list.headers.get('etag') },
  });
  const refused = await exchanges.call('getRevokedSignatures');
  await exchanges.also('getRevokedSignatures', {
    parameters: { 'if-none-match': refused.headers.get('etag') },
  });
  const [{ org_id: organization } = {}] = await rows<{ org_id: string }>(
    stage.app.dataSource,
    'SELECT org_id FROM users WHERE email = $1',
    [email],
  );
  const signers = await exchanges.call('getAllowedSigners', { parameters: { organization } });
  await exchanges.also('getAllowedSigners', {
    parameters: { organization, 'if-none-match': signers.headers.get('etag') },
  });
  await exchanges.call('checkRevocation', { parameters: { serial } });
  await exchanges.call('issueAwsToken', { body: { role_arn: ROLE } });
  await exchanges.call('getAwsToken', {
    parameters: { role_arn: ROLE },
    authorization: sessionOf(stage.admin),
  });
  await exchanges.also('getAwsToken', {
    parameters: { role_arn: ROLE, read_only: true },
    authorization: sessionOf(stage.admin),
  });
  await github(stage, exchanges);
  return exchanges.recorded();
}

async function github(
  { github: standIn, admin }: Stage,
  exchanges: Awaited<ReturnType<Stage['exchanges']>>,
): Promise<void> {
  await exchanges.call('getGitHubStatus');
  await exchanges.call('issueGitHubToken', {
    body: { owner: 'octo-org', repositories: ['hello'], permissions: { contents: 'read' } },
  });
  await exchanges.call('changeGitHubSettings', { body: { all_repositories: true } });
  const installed = standIn.state.install('second-org');
  standIn.state.browserUser = {
    id: 7,
    login: 'owner',
    sees: [installed.id],
    owns: [installed.account.id],
  };
  const begun = await exchanges.call('startGitHubLink', { body: { owner: 'second-org' } });
  const atGitHub = await admin.get(begun.json.authorization_url as string);
  const { searchParams } = new URL(atGitHub.headers.get('location') ?? '');
  await exchanges.call('completeGitHubLink', {
    parameters: { ...Object.fromEntries(searchParams), installation_id: installed.id },
  });
  const { id, account } = installed;
  const installation = { id, account, repository_selection: 'all' };
  const payload = { action: 'suspend', installation, sender: { login: 'owner' } };
  const { body, headers } = standIn.webhook('installation', payload);
  const { 'content-type': _type, 'user-agent': _agent, ...signed } = headers;
  await exchanges.call('receiveGitHubEvent', {
    parameters: signed,
    body: JSON.parse(body) as object,
    authorization: '',
  });
  await exchanges.call('removeGitHubInstallation', {
    parameters: { id: installed.id, prefer: 'return=representation' },
  });
  await admin.get('/v1/credentials/github/status', { address: newAddress() });
}
