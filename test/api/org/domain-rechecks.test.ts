import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DomainRechecks } from '../../../src/domain/organizations/domains/domain-rechecks.service.js';
import { ADVISORY_LOCKS } from '../../../src/platform/database/statements/advisory-lock-keys.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Client } from '../../support/client.js';
import { DnsServer } from '../../support/dns-server.js';
import {
  added,
  auditOfDomain,
  dnsModule,
  listed,
  proven,
  recheck,
  removal,
  verify,
} from '../../support/domains.js';
import { rows } from '../../support/rows.js';

const HOUR = 3_600_000;

describe('the daily check of domains', () => {
  let dns: DnsServer;
  let app: TestApp;
  let ada: Client;
  beforeAll(async () => {
    dns = await DnsServer.start();
    app = await startTestApp({ modules: [dnsModule({ servers: [dns.address], deadline: 1500 })] });
    ({ client: ada } = await app.enrolled('ada@checks.example'));
  });
  afterAll(async () => {
    await app.close();
    await dns.close();
  });
  beforeEach(() => {
    dns.questions.length = 0;
  });
  afterEach(async () => {
    dns.replies.clear();
    await rows(app.dataSource, 'DELETE FROM organization_domains WHERE NOT is_primary');
  });

  const run = () => app.nest.get(DomainRechecks, { strict: false }).run();
  /**
   * Returns the hours until the next check of a domain. Null or undefined means that none is due.
   */
  const hoursUntilNext = async (domain: string) => {
    const [row] = await rows<{ next_check_at: Date | null }>(
      app.dataSource,
      'SELECT next_check_at FROM organization_domains WHERE domain = $1',
      [domain],
    );
    return row?.next_check_at && (row.next_check_at.getTime() - Date.now()) / HOUR;
  };
  const lastSeen = (domain: string, days: number) =>
    rows(
      app.dataSource,
      `UPDATE organization_domains SET last_proven_at = last_proven_at - make_interval(hours => 24 * $2) WHERE domain = $1`,
      [domain, days],
    );

  it('asks the DNS for each verified domain once a day, and for no other domain', async () => {
    await proven(ada, dns, 'daily.example');
    await added(ada, 'pending.example');
    dns.questions.length = 0;
    expect(await run()).toBe(0);
    expect(await recheck(app, 'daily.example')).toBe(1);
    expect(await run()).toBe(0);
    expect(dns.questions).toEqual(['_svc-verification.daily.example']);
    const next = await hoursUntilNext('daily.example');
    expect(next).toBeGreaterThan(22.9);
    expect(next).toBeLessThanOrEqual(24);
    expect(await hoursUntilNext('pending.example')).toBeNull();
  });

  it('counts failures in a row alone: the record that is back sets them to none', async () => {
    const record = await proven(ada, dns, 'flaps.example');
    for (let time = 0; time < 4; time += 1) {
      dns.replies.set(record.name, { texts: ['something else'] });
      await recheck(app, 'flaps.example');
      await recheck(app, 'flaps.example');
      expect(await listed(ada, 'flaps.example')).toMatchObject({ state: 'failing', failures: 2 });
      dns.replies.set(record.name, { texts: [record.value] });
      await recheck(app, 'flaps.example');
      expect(await listed(ada, 'flaps.example')).toMatchObject({ state: 'verified', failures: 0 });
    }
    expect((await auditOfDomain(app, 'flaps.example')).map(({ type }) => type)).toEqual([
      'org_domain_added',
      'org_domain_verified',
    ]);
  });

  it('fails a domain once a day, however often it runs, and stops after it is unverified', async () => {
    const record = await proven(ada, dns, 'gone.example');
    dns.replies.set(record.name, { rcode: 'NXDOMAIN' });
    await recheck(app, 'gone.example');
    for (let time = 0; time < 5; time += 1) await run();
    expect(await listed(ada, 'gone.example')).toMatchObject({ state: 'failing', failures: 1 });
    await recheck(app, 'gone.example');
    await recheck(app, 'gone.example');
    expect(await listed(ada, 'gone.example')).toMatchObject({ state: 'unverified', failures: 3 });
    expect(await hoursUntilNext('gone.example')).toBeNull();
    dns.replies.set(record.name, { texts: [record.value] });
    expect(await recheck(app, 'gone.example')).toBe(0);
    expect(await listed(ada, 'gone.example')).toMatchObject({ state: 'unverified' });
  });

  it.each([{ rcode: 'SERVFAIL' }, { rcode: 'REFUSED' }, { silent: true }] as const)(
    'does not count %j as a failure, and asks again after an hour',
    async (reply) => {
      const record = await proven(ada, dns, 'outage.example');
      dns.replies.set(record.name, reply);
      for (let time = 0; time < 4; time += 1) await recheck(app, 'outage.example');
      expect(await listed(ada, 'outage.example')).toMatchObject({ state: 'verified', failures: 0 });
      expect(await hoursUntilNext('outage.example')).toBeLessThanOrEqual(1);
    },
  );

  it('counts faults once the record was not seen for 7 days: a dead zone keeps no domain', async () => {
    const record = await proven(ada, dns, 'dead.example');
    dns.replies.set(record.name, { rcode: 'SERVFAIL' });
    await lastSeen('dead.example', 8);
    for (const failures of [1, 2]) {
      await recheck(app, 'dead.example');
      expect(await listed(ada, 'dead.example')).toMatchObject({ state: 'failing', failures });
      expect(await hoursUntilNext('dead.example')).toBeGreaterThan(22);
    }
    await recheck(app, 'dead.example');
    expect(await listed(ada, 'dead.example')).toMatchObject({ state: 'unverified' });
  });

  it('runs in one replica at a time', async () => {
    await proven(ada, dns, 'locked.example');
    const holder = app.dataSource.createQueryRunner();
    await holder.query('SELECT pg_advisory_lock($1)', [ADVISORY_LOCKS.domainChecks]);
    expect(await recheck(app, 'locked.example')).toBeUndefined();
    await holder.query('SELECT pg_advisory_unlock($1)', [ADVISORY_LOCKS.domainChecks]);
    await holder.release();
    expect(await run()).toBe(1);
  });

  it('records nothing for a domain that was removed and added again during the look-up', async () => {
    const record = await proven(ada, dns, 'swapped.example');
    dns.replies.set(record.name, {
      texts: [],
      before: async () => {
        await removal(ada, 'swapped.example');
        await proven(ada, dns, 'swapped.example');
      },
    });
    expect(await recheck(app, 'swapped.example')).toBe(1);
    expect(await listed(ada, 'swapped.example')).toMatchObject({ state: 'verified', failures: 0 });
  });

  it('records no failure for a domain that an admin verified during the look-up', async () => {
    const record = await proven(ada, dns, 'verified-meanwhile.example');
    dns.replies.set(record.name, {
      texts: [],
      before: async () => {
        dns.replies.set(record.name, { texts: [record.value] });
        expect((await verify(ada, 'verified-meanwhile.example')).status).toBe(200);
      },
    });
    await recheck(app, 'verified-meanwhile.example');
    expect(await listed(ada, 'verified-meanwhile.example')).toMatchObject({ failures: 0 });
  });

  it('leaves a check due that could not be recorded, and goes on with the others', async () => {
    const record = await proven(ada, dns, 'a-held.example');
    await proven(ada, dns, 'b-free.example');
    dns.replies.set(record.name, { rcode: 'NXDOMAIN' });
    await rows(
      app.dataSource,
      `UPDATE organization_domains SET failures = 2, next_check_at = now() - interval '1 s' WHERE NOT is_primary`,
    );
    await rows(
      app.dataSource,
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no disk'; END $$`,
    );
    await rows(
      app.dataSource,
      `CREATE TRIGGER refuse BEFORE UPDATE ON organization_domains FOR EACH ROW
       WHEN (NEW.domain = 'a-held.example') EXECUTE FUNCTION refuse()`,
    );
    expect(await run()).toBe(2);
    await rows(app.dataSource, 'DROP FUNCTION refuse CASCADE');
    expect(await listed(ada, 'a-held.example')).toMatchObject({ state: 'failing', failures: 2 });
    expect(await listed(ada, 'b-free.example')).toMatchObject({ state: 'verified', failures: 0 });
    expect(await run()).toBe(1);
    expect(await listed(ada, 'a-held.example')).toMatchObject({ state: 'unverified' });
  });

  it('looks up 500 domains with 32 questions at a time at most, each once', async () => {
    await rows(
      app.dataSource,
      `INSERT INTO organization_domains (org_id, domain, token, verified_at, last_checked_at, last_proven_at, next_check_at)
       SELECT d.org_id, 'many-' || n || '.example', 'token', now(), date_trunc('milliseconds', now()), now(), now() - interval '1 s'
       FROM generate_series(1, 500) n, organization_domains d WHERE d.domain = 'checks.example'`,
    );
    dns.replies.set('*.example', { rcode: 'NXDOMAIN' });
    dns.mostAtOnce = 0;
    expect(await run()).toBe(500);
    expect(new Set(dns.questions).size).toBe(500);
    expect(dns.questions).toHaveLength(500);
    expect(dns.mostAtOnce).toBeGreaterThan(1);
    expect(dns.mostAtOnce).toBeLessThanOrEqual(32);
    expect(await run()).toBe(0);
  });
});

describe('a service with one connection for its work', () => {
  it('checks domains, and takes one that is lost', async () => {
    const dns = await DnsServer.start();
    const modules = [dnsModule({ servers: [dns.address] })];
    const app = await startTestApp({ modules, environment: { SVC_DB_MAX_CONNECTIONS: '2' } });
    const { client } = await app.enrolled('ada@narrow.example');
    const record = await proven(client, dns, 'narrow-extra.example');
    await recheck(app, 'narrow-extra.example');
    dns.replies.delete(record.name);
    for (let time = 0; time < 3; time += 1) await recheck(app, 'narrow-extra.example');
    expect(await listed(client, 'narrow-extra.example')).toMatchObject({ state: 'unverified' });
    await app.close();
    await dns.close();
  });
});

describe('a stop of the service', () => {
  it('ends the look-ups without a result, so that the next start repeats them', async () => {
    const dns = await DnsServer.start();
    const modules = [dnsModule({ servers: [dns.address] })];
    const app = await startTestApp({ modules });
    const { client } = await app.enrolled('ada@stopped.example');
    const record = await proven(client, dns, 'stopped-extra.example');
    dns.replies.set(record.name, { silent: true });
    dns.questions.length = 0;
    await rows(
      app.dataSource,
      `UPDATE organization_domains SET failures = 2, last_proven_at = now() - interval '9 days',
         next_check_at = now() - interval '1 s' WHERE token IS NOT NULL`,
    );
    const running = app.nest.get(DomainRechecks, { strict: false }).run();
    await expect.poll(() => dns.questions.length).toBeGreaterThan(0);
    await app.nest.get(DomainRechecks, { strict: false }).stopWork();
    await running;
    expect(await listed(client, 'stopped-extra.example')).toMatchObject({ failures: 2 });
    await app.close();
    await dns.close();
  });
});
