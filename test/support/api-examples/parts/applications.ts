import { rows } from '../../rows.js';
import { createStream, programOf } from '../../signal-streams.js';
import type { Stage } from '../stage.js';

const NEW = {
  name: 'Wiki',
  type: 'web',
  redirect_uris: ['https://wiki.example.com/callback'],
} as const;

/** Records examples of the operations on applications. */
export async function applicationExamples(stage: Stage): Promise<string> {
  const { app } = stage;
  const exchanges = await stage.exchanges();
  const { json: made } = await exchanges.call('registerApplication', { body: NEW });
  const id = made.client_id as string;
  await exchanges.call('listApplications');
  await exchanges.also('listApplications', { parameters: { after: id } });
  const shown = await exchanges.call('getApplication', { parameters: { id } });
  const tag = shown.headers.get('etag');
  const body = { name: 'Team wiki' };
  const changed = await exchanges.call('changeApplication', {
    parameters: { id, 'if-match': tag },
    body,
  });
  await exchanges.call('approveApplication', {
    parameters: { id, 'if-match': changed.headers.get('etag') },
  });
  await exchanges.call('revokeApplicationTokens', { parameters: { id } });
  const added = await exchanges.call('addApplicationSecret', {
    parameters: { id },
    body: { expires_previous_in_seconds: 86_400, expires_in_days: 365 },
  });
  await exchanges.call('listApplicationSecrets', { parameters: { id } });
  await exchanges.call('revokeApplicationSecret', {
    parameters: { id, secretId: added.json.id as string },
  });
  await signals(stage, exchanges, { clientId: id, clientSecret: made.client_secret as string });
  await rows(
    app.dataSource,
    `INSERT INTO logout_notices (client_id, self_registered, user_id, dead_at, last_result)
     SELECT $1, false, id, now(), 'status 500' FROM users, generate_series(1, 2)
     WHERE email = 'admin@octo.example'`,
    [id],
  );
  const notices = await exchanges.call('listLogoutNotices', { parameters: { id } });
  const [first, second] = notices.json.dead_letters as { id: string }[];
  await exchanges.call('repeatLogoutNotice', { parameters: { id, noticeId: first?.id } });
  await exchanges.call('dropLogoutNotice', { parameters: { id, noticeId: second?.id } });
  await exchanges.call('removeApplication', {
    parameters: { id, prefer: 'return=representation' },
  });
  return exchanges.recorded();
}

async function signals(
  { app }: Stage,
  exchanges: Awaited<ReturnType<Stage['exchanges']>>,
  application: { readonly clientId: string; readonly clientSecret: string },
): Promise<void> {
  const { clientId: id } = application;
  await exchanges.call('allowApplicationSignals', {
    parameters: { id },
    body: { subject_format: 'iss_sub' },
  });
  const program = await programOf(app, application);
  const stream = await createStream(program);
  await rows(
    app.dataSource,
    `INSERT INTO signal_events (stream_id, subject_id, type, dead_at, last_result)
     SELECT $1, $1, 'verification', now(), 'status 500' FROM generate_series(1, 2)`,
    [stream],
  );
  const { json } = await exchanges.call('getApplicationSignals', { parameters: { id } });
  const [first, second] = json.dead_letters as { id: string }[];
  await exchanges.call('repeatSignal', { parameters: { id, signalId: first?.id } });
  await exchanges.call('dropSignal', { parameters: { id, signalId: second?.id } });
  await exchanges.call('withdrawApplicationSignals', { parameters: { id } });
}
