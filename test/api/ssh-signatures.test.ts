import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { rows } from '../support/rows.js';

describe('the files by which git verifies signatures', () => {
  let app: TestApp;
  let orgId: string;
  let authority: string;
  beforeAll(async () => {
    app = await startTestApp();
    await app.enrolled('ada@acme.example');
    await app.enrolled('eve@other.example');
    orgId = await organizationOf('ada@acme.example');
    authority = (await app.client().get('/v1/credentials/ssh/ca')).text.trim();
  });
  afterAll(() => app.close());

  const organizationOf = async (email: string) => {
    const [row] = await rows<{ org_id: string }>(
      app.dataSource,
      'SELECT org_id FROM users WHERE email = $1',
      [email],
    );
    return row?.org_id ?? '';
  };
  const signers = (id: string, headers = {}) =>
    app
      .client()
      .get(`/v1/credentials/ssh/allowed_signers/${id}`, { address: newAddress(), headers });
  const lines = async () =>
    (await signers(orgId)).text.split('\n').filter((line) => !/^(?:#.*)?$/.test(line));
  const addDomain = (domain: string, verifiedAt: string | null) =>
    rows(
      app.dataSource,
      'INSERT INTO organization_domains (org_id, domain, verified_at) VALUES ($1, $2, $3)',
      [orgId, domain, verifiedAt],
    );

  it('trust the authority for the domains of the organization alone, each since it is owned', async () => {
    await addDomain('acme.test', '2026-01-05T09:00:00.250Z');
    await addDomain('pending.example', null);
    const [{ verified_at: since } = { verified_at: new Date(0) }] = await rows<{
      verified_at: Date;
    }>(
      app.dataSource,
      `SELECT verified_at FROM organization_domains WHERE domain = 'acme.example'`,
    );
    const whole = new Date(Math.ceil(since.getTime() / 1000) * 1000).toISOString();
    const stamp = whole.slice(0, 19).replaceAll(/[-:T]/g, '');
    expect(await lines()).toEqual([
      `*@acme.example cert-authority,namespaces="git",valid-after="${stamp}Z" ${authority}`,
      `*@acme.test cert-authority,namespaces="git",valid-after="20260105090001Z" ${authority}`,
    ]);
    await rows(app.dataSource, `DELETE FROM organization_domains WHERE domain = 'acme.test'`);
    expect(await lines()).toHaveLength(1);
  });

  it('leave out a domain that would match other names', async () => {
    await addDomain('*,*@acme.test', '2026-01-05T09:00:00Z');
    expect(await lines()).toHaveLength(1);
  });

  it('are public, and the same until something changes', async () => {
    const first = await signers(orgId);
    expect(first.headers.get('content-type')).toContain('text/plain');
    const tag = first.headers.get('etag') ?? '';
    expect((await signers(orgId, { 'if-none-match': tag })).status).toBe(304);
    expect((await signers(await organizationOf('eve@other.example'))).text).not.toContain('acme');
  });

  it.each(['00000000-0000-4000-8000-000000000000', 'acme.example', '%2A'])(
    'do not exist for %s',
    async (id) => {
      const { status, json } = await signers(id);
      expect([status, json.code]).toEqual([404, 'not_found']);
    },
  );

  it('keep a certificate that was revoked while it was valid, once, and no other', async () => {
    const insert = (serial: number, end: string) =>
      rows(
        app.dataSource,
        `INSERT INTO ssh_certificates (serial, user_id, session_id, key_id, principals, public_key, ca_fingerprint, valid_after, valid_before)
         SELECT $1, gen_random_uuid(), gen_random_uuid(), 'x', '{x}', 'SHA256:x', fingerprint, now() - interval '1 hour', now() + $2::interval
         FROM ssh_authorities`,
        [serial, end],
      );
    await insert(11, '1 hour');
    await insert(12, '-1 minute');
    await insert(13, '1 hour');
    const revoke = `UPDATE ssh_certificates SET revoked_at = now(), revoke_reason = 'x', revoked_by = 'x' WHERE serial IN (11, 12)`;
    await rows(app.dataSource, revoke);
    await rows(app.dataSource, revoke);
    await rows(app.dataSource, 'DELETE FROM ssh_certificates WHERE serial IN (11, 12)');
    const kept = await rows<{ serial: string }>(
      app.dataSource,
      'SELECT serial FROM ssh_revoked_signatures WHERE serial < 100',
    );
    expect(kept).toEqual([{ serial: '11' }]);
    const isRevoked = async (serial: number) =>
      (await app.client().get(`/v1/credentials/ssh/krl/${serial}`)).json.revoked;
    expect([await isRevoked(11), await isRevoked(12), await isRevoked(13)]).toEqual([
      true,
      false,
      false,
    ]);
    const list = await app.client().get('/v1/credentials/ssh/krl/signatures');
    expect(list.headers.get('content-type')).toBe('application/octet-stream');
    const tag = list.headers.get('etag') ?? '';
    const again = await app
      .client()
      .get('/v1/credentials/ssh/krl/signatures', { headers: { 'if-none-match': tag } });
    expect(again.status).toBe(304);
  });
});
