import { addGroup } from '../../access-api.js';
import { idOf } from '../../org-api.js';
import type { Stage } from '../stage.js';

/** Records examples of the operations on the targets of an organization and their access rules. */
export async function accessExamples(stage: Stage): Promise<string> {
  const { app, organization } = stage;
  await stage.member('walter@octo.example');
  const user = await idOf(app, 'admin@octo.example');
  const group = await addGroup(organization, 'Platform', [user]);
  const exchanges = await stage.exchanges();
  const { call, also } = exchanges.bound;
  const role = await call('addAwsRole', {
    body: {
      role_arn: 'arn:aws:iam::123456789012:role/reader',
      name: 'reader',
      region: 'eu-central-1',
    },
  });
  const hosts = await call('addHostGroup', {
    body: { name: 'database', hosts: ['*.db.octo.example'], logins: ['postgres'] },
  });
  const [roleId, hostsId] = [role.json.id as string, hosts.json.id as string];
  const changedRole = await call('changeAwsRole', {
    parameters: { id: roleId, 'if-match': role.headers.get('etag') },
    body: { region: 'eu-west-1' },
  });
  const changedHosts = await call('changeHostGroup', {
    parameters: { id: hostsId, 'if-match': hosts.headers.get('etag') },
    body: { logins: ['postgres', 'backup'] },
  });
  await call('listTargets', { parameters: { kind: 'host_group', q: 'database' } });
  const { next } = (await also('listTargets', { parameters: { limit: 1 } })).json;
  await also('listTargets', { parameters: { after: next as string } });
  const target = { kind: 'host_group', id: hostsId };
  await call('getTarget', { parameters: target });
  const rule = {
    access: 'assigned',
    conditions: { touch_within_seconds: 3600, user_verification: 'required' },
    assignments: [{ user }, { group }],
  };
  await call('previewTargetChange', { parameters: target, body: rule });
  const ruled = await call('replaceTargetRule', {
    parameters: { ...target, 'if-match': changedHosts.headers.get('etag') },
    body: rule,
  });
  await call('listAdmittedMembers', { parameters: target });
  const everyone = { kind: 'aws_role', id: roleId, limit: 1 };
  const page = await also('listAdmittedMembers', { parameters: everyone });
  await also('listAdmittedMembers', {
    parameters: { ...everyone, after: page.json.next as string },
  });
  await call('checkAccess', { parameters: { ...target, user } });
  await call('exportAccess');
  await call('deleteAwsRole', {
    parameters: { id: roleId, 'if-match': changedRole.headers.get('etag') },
  });
  await call('deleteHostGroup', {
    parameters: { id: hostsId, 'if-match': ruled.headers.get('etag') },
  });
  return exchanges.recorded();
}
