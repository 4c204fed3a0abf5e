import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { IssuingSession } from '#domain/ssh/certificate-issuance.service.js';
import { readCertificate } from '@svc/openssh';
import { assign, makeHostGroup, makeScimGroup, touchAgo } from '../support/access-hosts.js';
import { setRule, unassign } from '../support/access-rows.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { SshIssuance } from '../support/ssh-issuance.js';

const MAIL = 'alice@example.com';

describe('an SSH certificate with groups of hosts', () => {
  let world: SshIssuance;
  let session: IssuingSession;
  let orgId: string;

  beforeAll(async () => {
    world = await SshIssuance.open();
    await world.dataSource.query(`INSERT INTO deployment (composition) VALUES ('test')`);
  });
  afterAll(() => world.close());
  beforeEach(async () => {
    session = await world.reset();
    await world.dataSource.query('TRUNCATE ssh_certificate_groups, access_endings');
    const [organization] = await world.rows('organizations');
    orgId = String(organization?.['id']);
  });

  const prod = (more = {}) => makeHostGroup(world.dataSource, { orgId, name: 'prod', ...more });
  const audited = async () => (await world.rows('audit_events')).at(-1);
  const codeOf = (attempt: Promise<unknown>) =>
    attempt.then(
      () => 'issued',
      (error: { code?: string }) => error.code,
    );

  it('carries the logins of each group by its name, after the address', async () => {
    await prod({ logins: ['ubuntu', 'deploy'] });
    await makeHostGroup(world.dataSource, { orgId, name: 'dev', logins: ['root'] });
    const issued = await world.issue(session);
    const expected = [MAIL, `root@dev:${orgId}`, `deploy@prod:${orgId}`, `ubuntu@prod:${orgId}`];
    expect(issued.principals).toEqual(expected);
    expect(readCertificate(issued.certificate).principals).toEqual(expected);
    expect(issued.hostGroups).toEqual([
      { name: 'dev', hosts: ['*.dev.example'], carried: true },
      { name: 'prod', hosts: ['*.prod.example'], carried: true },
    ]);
    expect(await audited()).toMatchObject({
      type: 'ssh_credential',
      details: { principals: expected, host_groups: ['dev', 'prod'] },
    });
    expect(await world.rows('ssh_certificates')).toMatchObject([{ principals: expected }]);
  });

  it('records each carried group with what names and ends the certificate', async () => {
    const id = await prod();
    const issued = await world.issue(session);
    expect(await world.rows('ssh_certificate_groups')).toEqual([
      {
        target_id: id,
        serial: issued.serial.toString(),
        user_id: session.userId,
        session_id: session.sessionId,
        principals: [`deploy@prod:${orgId}`],
        valid_before: issued.validBefore,
      },
    ]);
  });

  it('says nothing of groups in an organization without any', async () => {
    const issued = await world.issue(session);
    expect([issued.principals, issued.hostGroups]).toEqual([[MAIL], undefined]);
    expect((await audited())?.['details']).not.toHaveProperty('host_groups');
    expect(await codeOf(world.issue(session, { host: 'web1.prod.example' }))).toBe('issued');
  });

  it('names no group to a person whom none admits, until one does', async () => {
    const id = await prod({ access: 'assigned' });
    const before = await world.issue(session);
    expect([before.principals, before.hostGroups]).toEqual([[MAIL], []]);
    const groupId = await makeScimGroup(world.dataSource, orgId, [session.userId]);
    await assign(world.dataSource, id, { groupId });
    expect((await world.issue(session)).principals).toEqual([MAIL, `deploy@prod:${orgId}`]);
    await unassign(world.dataSource, id, { groupId });
    // The first request forgets that a group admitted the person, so that the second one is short.
    for (const request of [1, 2]) {
      const after = await world.issue(session);
      expect([request, after.principals, after.hostGroups]).toEqual([request, [MAIL], []]);
    }
    await setRule(world.dataSource, id, { access: 'everyone' });
    expect((await world.issue(session)).hostGroups).toMatchObject([{ name: 'prod' }]);
  });

  it('carries an assigned group for its people and the members of its SCIM groups alone', async () => {
    const bob = await world.signIn('bob@example.com', orgId);
    const carol = await world.signIn('carol@example.com', orgId);
    const id = await prod({ access: 'assigned' });
    await assign(world.dataSource, id, { userId: session.userId });
    const groupId = await makeScimGroup(world.dataSource, orgId, [bob.userId]);
    await assign(world.dataSource, id, { groupId });
    const names = async (of: IssuingSession) => (await world.issue(of)).principals;
    expect(await names(session)).toEqual([MAIL, `deploy@prod:${orgId}`]);
    expect(await names(bob)).toEqual(['bob@example.com', `deploy@prod:${orgId}`]);
    expect(await names(carol)).toEqual(['carol@example.com']);
    await world.dataSource.query('UPDATE deployment SET access_by_groups = false');
    expect(await names(bob)).toEqual(['bob@example.com']);
    await world.dataSource.query('UPDATE deployment SET access_by_groups = true');
  });

  it('never carries a group of another organization, with an equal name and login', async () => {
    const other = await world.newOrganization('other.example');
    await makeHostGroup(world.dataSource, { orgId: other, name: 'prod' });
    expect((await world.issue(session)).principals).toEqual([MAIL]);
    const principals = [`deploy@prod:${other}`];
    expect(await codeOf(world.issue(session, { principals }))).toBe('principal_not_allowed');
    // The host matches no group of this organization, so that the certificate has no group.
    const issued = await world.issue(session, { host: 'web1.prod.example' });
    expect(issued.principals).toEqual([MAIL]);
  });

  describe('with conditions', () => {
    it('ends with the touch that a group counts, and carries the group until then', async () => {
      await prod({ touchWithinSeconds: 900 });
      await touchAgo(world.dataSource, session.sessionId, 600);
      const { principals, validBefore } = await world.issue(session);
      expect(principals).toEqual([MAIL, `deploy@prod:${orgId}`]);
      const left = (validBefore.getTime() - Date.now()) / 1000;
      expect(left).toBeGreaterThan(280);
      expect(left).toBeLessThanOrEqual(300);
    });

    it('leaves out one stale group, and keeps the rest for the whole session', async () => {
      await prod({ touchWithinSeconds: 900 });
      await makeHostGroup(world.dataSource, { orgId, name: 'dev' });
      await touchAgo(world.dataSource, session.sessionId, 901);
      const { principals, validBefore, hostGroups, touchNeeded } = await world.issue(session);
      expect(touchNeeded).toBe(true);
      expect(principals).toEqual([MAIL, `deploy@dev:${orgId}`]);
      expect(validBefore.getTime() - Date.now()).toBeGreaterThan(7 * 3_600_000);
      expect(hostGroups).toMatchObject([{ carried: true }, { name: 'prod', carried: false }]);
    });

    it('says that a touch is needed if a host has a stale group beside another', async () => {
      await prod();
      const root = { orgId, name: 'prod-root', hosts: ['*.prod.example'], logins: ['root'] };
      await makeHostGroup(world.dataSource, { ...root, touchWithinSeconds: 900 });
      const of = async (request: object) => {
        const { principals, touchNeeded } = await world.issue(session, request);
        return [principals.length, touchNeeded];
      };
      const host = 'web1.prod.example';
      await touchAgo(world.dataSource, session.sessionId, 1);
      expect(await of({ host })).toEqual([3, false]);
      await touchAgo(world.dataSource, session.sessionId, 901);
      expect(await of({ host })).toEqual([2, true]);
      expect(await of({ host: 'other.example' })).toEqual([1, false]);
      expect(await of({ principals: [`deploy@prod:${orgId}`] })).toEqual([1, false]);
      expect(await of({ host, principals: [MAIL] })).toEqual([1, false]);
      expect(await of({ principals: [MAIL] })).toEqual([1, false]);
      await world.dataSource.query(`UPDATE sessions SET touches = '{}'`); // as that of a device
      expect(await of({ host })).toEqual([2, false]);
    });

    it('carries no group of which the touch allows less than a whole second more', async () => {
      await prod({ touchWithinSeconds: 900 });
      await world.dataSource.query(
        `UPDATE sessions SET touches = jsonb_build_object('key', jsonb_build_object(
           'at', extract(epoch FROM date_trunc('second', now())) + 0.999 - 900, 'uv', NULL, 'fips', false))
         WHERE id = $1`,
        [session.sessionId],
      );
      const { principals, validBefore } = await world.issue(session);
      expect(validBefore.getTime()).toBeGreaterThan(Date.now());
      expect(principals).toEqual([MAIL]);
    });

    it('is not issued in a session that ends within its second', async () => {
      await world.dataSource.query(
        `UPDATE sessions SET expires_at = date_trunc('second', now()) + interval '999 milliseconds' WHERE id = $1`,
        [session.sessionId],
      );
      expect(await codeOf(world.issue(session))).toBe('unauthenticated');
    });

    it('takes no touch by another model, or without the PIN, for one that fits', async () => {
      await prod({ models: 'fips-only', userVerification: 'required' });
      const issue = async (touch: { uv?: boolean; fips?: boolean }) => {
        await touchAgo(world.dataSource, session.sessionId, 1, touch);
        return (await world.issue(session)).principals.length;
      };
      expect(await issue({ uv: true })).toBe(1);
      expect(await issue({ fips: true })).toBe(1);
      expect(await issue({ uv: true, fips: true })).toBe(2);
    });

    it('challenges a browser, and sends a device to one, for a host whose condition is not met', async () => {
      await prod({ touchWithinSeconds: 900 });
      await touchAgo(world.dataSource, session.sessionId, 901);
      const request = { host: 'web1.prod.example' };
      await expect(world.issue(session, request)).rejects.toMatchObject({
        code: 'insufficient_user_authentication',
        challenge: { maxAge: 900 },
      });
      const denied = { ...session.denied, isOfDevice: true };
      expect(await codeOf(world.issue({ ...session, denied }, request))).toBe('browser_required');
      const principals = [`deploy@prod:${orgId}`];
      expect(await codeOf(world.issue(session, { principals }))).toBe(
        'insufficient_user_authentication',
      );
      expect(await audited()).toMatchObject({
        type: 'access_refused',
        details: { target: { kind: 'host_group' }, rule: 'condition' },
      });
      expect(await world.rows('ssh_certificates')).toEqual([]);
    });
  });

  describe('for a host', () => {
    it('carries only the groups whose patterns match it', async () => {
      await prod({ hosts: ['*.prod.example', '!db?.prod.example', '10.0.0.*'] });
      await makeHostGroup(world.dataSource, { orgId, name: 'dev' });
      const carried = async (host: string) =>
        (await world.issue(session, { host })).principals.slice(1);
      expect(await carried('Web1.PROD.example')).toEqual([`deploy@prod:${orgId}`]);
      expect(await carried('10.0.0.7')).toEqual([`deploy@prod:${orgId}`]);
      expect(await carried('db1.prod.example')).toEqual([]);
      expect(await carried('unknown.example')).toEqual([]);
    });

    it('is refused if no group of the host admits the person, and records the refusal', async () => {
      await prod({ access: 'assigned' });
      const host = 'web1.prod.example';
      expect(await codeOf(world.issue(session, { host }))).toBe('not_assigned');
      expect(await audited()).toMatchObject({
        type: 'access_refused',
        subject_id: session.userId,
        details: { target: { kind: 'host_group', name: host }, rule: 'assignment' },
      });
      // A second group that matches the host admits the person.
      await makeHostGroup(world.dataSource, { orgId, name: 'ops', hosts: ['*'] });
      const { principals } = await world.issue(session, { host });
      expect(principals).toEqual([MAIL, `deploy@ops:${orgId}`]);
    });

    it('reads a pattern as ssh does, and never as SQL does', async () => {
      await prod({ hosts: ['a_b.example', '100%.example'] });
      const host = async (name: string) =>
        (await world.issue(session, { host: name })).principals.length;
      expect(await host('a_b.example')).toBe(2);
      expect(await host('axb.example')).toBe(1);
      expect(await host('100x.example')).toBe(1);
    });
  });

  describe('with named principals', () => {
    it('carries the named ones alone', async () => {
      await prod({ logins: ['deploy', 'ubuntu'] });
      await makeHostGroup(world.dataSource, { orgId, name: 'dev' });
      const principals = [`ubuntu@prod:${orgId}`];
      expect((await world.issue(session, { principals })).principals).toEqual(principals);
      expect(await world.rows('ssh_certificate_groups')).toMatchObject([{ principals }]);
      const plain = await world.issue(session, { principals: [MAIL] });
      expect(plain.principals).toEqual([MAIL]);
    });

    it('is refused if one of them is not held, and never carries fewer', async () => {
      await prod({ access: 'assigned' });
      const dev = await makeHostGroup(world.dataSource, { orgId, name: 'dev', access: 'assigned' });
      await assign(world.dataSource, dev, { userId: session.userId });
      for (const [principals, code] of [
        [[MAIL, `deploy@prod:${orgId}`], 'not_assigned'],
        [[`deploy@dev:${orgId}`, `root@dev:${orgId}`], 'not_assigned'],
        [['bob@example.com', `deploy@dev:${orgId}`], 'principal_not_allowed'],
      ] as const) {
        expect(await codeOf(world.issue(session, { principals }))).toBe(code);
      }
      expect(await world.rows('ssh_certificates')).toEqual([]);
    });

    it('is refused alike for an unassigned group, an unknown group and an unknown login', async () => {
      await prod({ access: 'assigned' });
      const dev = await makeHostGroup(world.dataSource, { orgId, name: 'dev', access: 'assigned' });
      await assign(world.dataSource, dev, { userId: session.userId });
      const ask = async (name: string) => {
        const principals = [`deploy@dev:${orgId}`, name];
        const refusal = await world
          .issue(session, { principals })
          .catch((error: { code: string; message: string }) => [error.code, error.message]);
        return { refusal, details: (await audited())?.['details'] };
      };
      const closed = await ask(`deploy@prod:${orgId}`);
      const unknown = await ask(`deploy@none:${orgId}`);
      const login = await ask(`root@dev:${orgId}`);
      expect(closed.refusal).toEqual(['not_assigned', expect.any(String)]);
      expect([unknown.refusal, login.refusal]).toEqual([closed.refusal, closed.refusal]);
      const target = { kind: 'host_group', name: null };
      const of = (name: string) => ({ target, rule: 'assignment', principals: [name] });
      expect([closed.details, unknown.details, login.details]).toEqual([
        { ...of(`deploy@prod:${orgId}`), host_groups: ['prod'] },
        of(`deploy@none:${orgId}`),
        { ...of(`root@dev:${orgId}`), host_groups: ['dev'] },
      ]);
    });

    it('is no refusal by a rule for another organization, or for a host of another group', async () => {
      await prod();
      const other = await world.newOrganization('third.example');
      for (const request of [
        { principals: [`deploy@prod:${other}`] },
        { principals: [`deploy@prod:${orgId}`], host: 'db.dev.example' },
      ]) {
        expect(await codeOf(world.issue(session, request))).toBe('principal_not_allowed');
      }
      const types = (await world.rows('audit_events')).map((event) => event['type']);
      expect(types).not.toContain('access_refused');
    });
  });

  describe('with many principals', () => {
    const logins = (count: number) => Array.from({ length: count }, (_, n) => `u${n}`);

    it('carries 256, and refuses 257 with a word about the host', async () => {
      await prod({ logins: logins(255) });
      const issued = await world.issue(session);
      expect(readCertificate(issued.certificate).principals).toHaveLength(256);
      await makeHostGroup(world.dataSource, { orgId, name: 'dev' });
      await expect(world.issue(session)).rejects.toMatchObject({
        code: 'too_many_principals',
        message: expect.stringContaining('`host`'),
      });
      const host = 'web1.prod.example';
      expect((await world.issue(session, { host })).principals).toHaveLength(256);
      expect(await world.rows('ssh_certificate_groups')).toHaveLength(2);
    });

    it('counts the user name too', async () => {
      await prod({ logins: logins(255) });
      const both = ['email', 'username'] as const;
      expect(await codeOf(world.issue(session, {}, both))).toBe('too_many_principals');
    });
  });

  /**
   * Issues a certificate while another transaction has made a change, and ends that transaction
   * when the issuance waits.
   */
  async function issueDuring(change: string, end: 'COMMIT' | 'ROLLBACK') {
    const runner = world.dataSource.createQueryRunner();
    await runner.query('BEGIN');
    try {
      await runner.query(change);
      // runs the deferred triggers, as a commit does
      await runner.query('SET CONSTRAINTS ALL IMMEDIATE');
      const waiting = world.issue(session);
      waiting.catch(() => undefined);
      await untilWaiting(world.dataSource, 1);
      await runner.query(end);
      return await waiting;
    } finally {
      await runner.query('ROLLBACK');
      await runner.release();
    }
  }

  describe('beside a change', () => {
    const CHANGES = {
      'of the target': `UPDATE access_targets SET updated_at = now()`,
      'of the assignment': `DELETE FROM access_assignments`,
      'of the membership': `DELETE FROM group_members`,
    };

    it.each(Object.entries(CHANGES))(
      '%s that is rolled back, a batch never gives fewer principals',
      async (_, change) => {
        const id = await prod({ access: 'assigned' });
        const groupId = await makeScimGroup(world.dataSource, orgId, [session.userId]);
        await assign(world.dataSource, id, { groupId });
        const attempt = await issueDuring(change, 'ROLLBACK');
        expect(attempt.principals).toEqual([MAIL, `deploy@prod:${orgId}`]);
      },
    );

    const ENDS = {
      'the rule': `UPDATE access_targets SET access = 'assigned'`,
      'the target': `DELETE FROM access_targets WHERE kind = 'host_group'`,
      'the name of the group': `UPDATE access_targets SET name = 'stage'`,
    };
    it.each(Object.entries(ENDS))('%s, it carries what is so after the change', async (_, end) => {
      await prod();
      const attempt = await issueDuring(end, 'COMMIT');
      expect(attempt.principals).not.toContain(`deploy@prod:${orgId}`);
    });
  });
});
