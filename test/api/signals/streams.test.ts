import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress } from '../../support/client.js';
import { rows } from '../../support/rows.js';
import { touchedAgo } from '../../support/keys.js';
import { registerApplication, signInTo } from '../../support/signed-in-application.js';
import {
  askToken,
  createStream,
  newProgram,
  programOf,
  registerReceiver,
  sendSsf,
  signalsApi,
  signalsOf,
  signalToken,
} from '../../support/signal-streams.js';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({ environment: { SVC_CLEANUP_INTERVAL: '0' } });
});
afterAll(() => app.close());

let organizations = 0;

/** Creates an organization with an admin. */
async function newAdmin() {
  organizations += 1;
  const email = `ada@streams-${organizations}.example`;
  return { email, ...(await app.enrolled(email)) };
}

/** Creates an organization with an admin and an application that may have a stream. */
async function newGround() {
  const admin = await newAdmin();
  return { ...admin, program: await newProgram(app, admin.client) };
}

const POLL = { delivery: { method: 'urn:ietf:rfc:8936' } };
const CAEP = 'https://schemas.openid.net/secevent/caep/event-type';
const RISC = 'https://schemas.openid.net/secevent/risc/event-type';

describe('the metadata', () => {
  it('of the transmitter has what the CAEP interoperability profile demands (§2.3)', async () => {
    const answer = await app.client().get('/.well-known/ssf-configuration');
    expect(answer.json).toEqual({
      spec_version: '1_0',
      issuer: app.baseUrl,
      jwks_uri: `${app.baseUrl}/oauth/jwks`,
      delivery_methods_supported: ['urn:ietf:rfc:8935', 'urn:ietf:rfc:8936'],
      configuration_endpoint: `${app.baseUrl}/ssf/stream`,
      status_endpoint: `${app.baseUrl}/ssf/status`,
      add_subject_endpoint: `${app.baseUrl}/ssf/subjects/add`,
      remove_subject_endpoint: `${app.baseUrl}/ssf/subjects/remove`,
      verification_endpoint: `${app.baseUrl}/ssf/verify`,
      authorization_schemes: [{ spec_urn: 'urn:ietf:rfc:6749' }],
      default_subjects: 'ALL',
    });
  });

  it('of the protected resource names the scopes, and each challenge names it (RFC 9728)', async () => {
    const refused = await sendSsf(app, undefined, 'GET', '/ssf/stream');
    const challenge = refused.headers.get('www-authenticate') ?? '';
    const [, address = ''] = /resource_metadata="([^"]+)"/.exec(challenge) ?? [];
    expect([refused.status, address]).toEqual([
      401,
      `${app.baseUrl}/.well-known/oauth-protected-resource/ssf`,
    ]);
    const metadata = await app.client().get(new URL(address).pathname);
    expect(metadata.json).toEqual({
      resource: `${app.baseUrl}/ssf`,
      authorization_servers: [app.baseUrl],
      scopes_supported: ['ssf.read', 'ssf.manage'],
      bearer_methods_supported: ['header'],
    });
    const other = await app.client().get('/v1/keys');
    expect(other.headers.get('www-authenticate')).toContain(
      `resource_metadata="${app.baseUrl}/.well-known/oauth-protected-resource"`,
    );
  });
});

describe('a token for signals', () => {
  it('is given to an application that an admin allowed, with and without the resource', async () => {
    const { program } = await newGround();
    for (const fields of [{}, { resource: `${app.baseUrl}/ssf` }]) {
      const answer = await askToken(app, program.application, { scope: 'ssf.read', ...fields });
      expect([answer.status, answer.json]).toEqual([
        200,
        expect.objectContaining({ scope: 'ssf.read', token_type: 'Bearer' }),
      ]);
      const { access_token: token, expires_in: seconds } = answer.json as Record<string, unknown>;
      expect(Number(seconds)).toBeLessThanOrEqual(3600);
      expect((await sendSsf(app, token as string, 'GET', '/ssf/stream')).json).toEqual([]);
    }
  });

  it('is refused to an application that no admin allowed, and for other scopes', async () => {
    const { client, program } = await newGround();
    const other = await registerReceiver(client);
    const asked = await askToken(app, other, { scope: 'ssf.read' });
    expect([asked.status, asked.json.error]).toEqual([400, 'unauthorized_client']);
    const service = await registerApplication(client, {
      type: 'service',
      redirect_uris: [],
      scopes: ['jobs'],
    });
    const early = await askToken(app, service, { scope: 'ssf.read' });
    expect([early.status, early.json.error]).toEqual([400, 'invalid_target']);
    expect((await signalsApi(client, 'PUT', service, {})).status).toBe(200);
    for (const scope of ['ssf.write', 'ssf.read svc:admin', 'ssf.read jobs', 'ssf']) {
      const answer = await askToken(app, service, { scope });
      expect([scope, answer.status, answer.json.error]).toEqual([scope, 400, 'invalid_scope']);
    }
    // With the permission for signals, a web application gets tokens for signals by client
    // credentials, and no others.
    const others = [{}, { scope: 'openid' }, { resource: 'https://api.example/' }];
    for (const fields of others) {
      const answer = await askToken(app, program.application, fields);
      expect([fields, answer.status, answer.json.error]).toEqual([
        fields,
        400,
        'unauthorized_client',
      ]);
    }
    for (const fields of [{}, { scope: 'jobs' }, { scope: 'ssf.manage' }]) {
      expect((await askToken(app, service, fields)).status).toBe(200);
    }
    const empty = await askToken(app, program.application, { resource: `${app.baseUrl}/ssf` });
    expect([empty.status, empty.json.error]).toEqual([400, 'invalid_scope']);
  });

  it('cannot be had by registering the scope for another resource', async () => {
    const { client } = await newAdmin();
    const answer = await client.post(
      '/api/v1/applications',
      { name: 'Sly', type: 'service', scopes: ['ssf.manage'] },
      { address: newAddress() },
    );
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
  });

  it('is the only one that opens the endpoints', async () => {
    const { client, program } = await newGround();
    const { accessToken } = await signInTo(app, client, program.application);
    const service = await registerApplication(client, { type: 'service', redirect_uris: [] });
    await signalsApi(client, 'PUT', service, {});
    const own = await askToken(app, service, { scope: 'openid' });
    const wide = await askToken(app, service, { resource: 'https://api.example/' });
    const tokens = {
      none: undefined,
      'of a user': accessToken,
      'of a session': client.cookie('svc_session'),
      'of the client for itself': own.json.access_token as string,
      'of the client for another resource': wide.json.access_token as string,
      unknown: 'A'.repeat(43),
    };
    for (const [name, token] of Object.entries(tokens)) {
      const answer = await sendSsf(app, token, 'GET', '/ssf/stream');
      expect([name, answer.status]).toEqual([name, 401]);
    }
    const byCookie = await client.send('GET', '/ssf/stream', { address: newAddress() });
    const inQuery = await sendSsf(
      app,
      undefined,
      'GET',
      `/ssf/stream?access_token=${program.token}`,
    );
    expect([byCookie.status, inQuery.status]).toEqual([401, 401]);
  });

  it('that only reads changes nothing, takes no event, and is told the missing scope', async () => {
    const { program } = await newGround();
    const streamId = await createStream(program);
    const reading = await signalToken(app, program.application, 'ssf.read');
    const of = { stream_id: streamId };
    const subject = { format: 'email', email: 'a@b.example' };
    const writes = [
      ['POST', '/ssf/stream', POLL],
      ['PATCH', '/ssf/stream', of],
      ['PUT', '/ssf/stream', { ...of, ...POLL }],
      ['DELETE', `/ssf/stream?stream_id=${streamId}`],
      ['POST', '/ssf/status', { ...of, status: 'paused' }],
      ['POST', '/ssf/verify', of],
      ['POST', '/ssf/subjects/add', { ...of, subject }],
      ['POST', '/ssf/subjects/remove', { ...of, subject }],
      ['POST', `/ssf/poll/${streamId}`, { returnImmediately: true }],
    ] as const;
    for (const [method, path, body] of writes) {
      const answer = await sendSsf(app, reading, method, path, body);
      expect([path, answer.status, answer.headers.get('www-authenticate')]).toEqual([
        path,
        403,
        expect.stringContaining('scope="ssf.manage"'),
      ]);
    }
    for (const path of ['/ssf/stream', `/ssf/status?stream_id=${streamId}`]) {
      expect((await sendSsf(app, reading, 'GET', path)).status).toBe(200);
    }
  });

  it('opens nothing after the permission, the application or its owner has ended', async () => {
    const { client, email, program } = await newGround();
    const read = () => sendSsf(app, program.token, 'GET', '/ssf/stream');
    expect((await read()).status).toBe(200);
    await rows(app.dataSource, 'UPDATE users SET active = false WHERE email = $1', [email]);
    expect((await read()).status).toBe(401);
    await rows(app.dataSource, 'UPDATE users SET active = true WHERE email = $1', [email]);
    expect((await read()).status).toBe(200);
    expect((await signalsApi(client, 'DELETE', program.application)).status).toBe(204);
    expect((await read()).status).toBe(401);
    expect((await signalsApi(client, 'PUT', program.application, {})).status).toBe(200);
    expect((await read()).status).toBe(401);
    const again = await programOf(app, program.application);
    expect((await again.send('GET', '/ssf/stream')).status).toBe(200);
    await client.send('DELETE', `/api/v1/applications/${program.application.clientId}`, {
      address: newAddress(),
    });
    expect((await again.send('GET', '/ssf/stream')).status).toBe(401);
  });
});

describe('the permission to receive signals', () => {
  it('is given by an admin with a recent touch alone, and is in the audit log', async () => {
    const { client, email } = await newAdmin();
    const application = await registerReceiver(client);
    await touchedAgo(app, email, 600);
    expect((await signalsApi(client, 'PUT', application, {})).status).toBe(401);
    await touchedAgo(app, email, 0);
    expect((await signalsApi(client, 'PUT', application, {})).json).toMatchObject({
      allowed: true,
      subject_format: 'iss_sub',
      stream: null,
      waiting: 0,
      dead_letters: [],
    });
    const { client: member } = await app.enrolled(`bob@${email.split('@')[1]}`);
    const own = await registerReceiver(member);
    const refused = await signalsApi(member, 'PUT', own, {});
    expect([refused.status, refused.json.code]).toEqual([403, 'admin_required']);
    const acts = await rows<{ details: object }>(
      app.dataSource,
      "SELECT details FROM audit_events WHERE type = 'oauth_client_updated' AND details ->> 'client_id' = $1",
      [application.clientId],
    );
    expect(acts.map(({ details }) => details)).toEqual([
      { client_id: application.clientId, changed: ['signals'], signals: 'iss_sub' },
    ]);
  });

  it('of another organization is not there', async () => {
    const { program } = await newGround();
    const { client: stranger } = await newAdmin();
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const answer = await signalsApi(
        stranger,
        method,
        program.application,
        method === 'PUT' ? {} : undefined,
      );
      expect([method, answer.status]).toEqual([method, 404]);
    }
  });

  it('is not for a cluster, and not for an application that keeps no secret', async () => {
    const { client } = await newAdmin();
    const spa = await registerApplication(client, { type: 'spa', auth_method: 'none' });
    const refused = await signalsApi(client, 'PUT', spa, {});
    expect([refused.status, refused.json.code]).toEqual([400, 'invalid_request']);
    const id = await rows<{ org_id: string }>(
      app.dataSource,
      'SELECT org_id FROM users WHERE email = $1',
      [`ada@streams-${organizations}.example`],
    );
    const cluster = await client.post(
      '/api/v1/applications',
      { name: 'Cluster', type: 'kubernetes', resource: `urn:svc:${id[0]?.org_id}:one` },
      { address: newAddress() },
    );
    const { client_id: clientId } = cluster.json as { client_id: string };
    const answer = await signalsApi(client, 'PUT', { clientId, clientSecret: '' }, {});
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
  });
});

describe('a stream', () => {
  it('is created, read, changed, replaced and deleted (SSF §8.1.1)', async () => {
    const { program } = await newGround();
    const uri = 'http://127.0.0.1:9/events?key=1';
    const created = await program.send('POST', '/ssf/stream', {
      delivery: {
        method: 'urn:ietf:rfc:8935',
        endpoint_url: uri,
        authorization_header: 'Bearer planted-secret',
      },
      events_requested: [`${CAEP}/session-revoked`, 'urn:example:unknown'],
      description: 'The first one',
    });
    const id = created.json.stream_id as string;
    const stream = {
      stream_id: id,
      iss: app.baseUrl,
      aud: program.application.clientId,
      delivery: { method: 'urn:ietf:rfc:8935', endpoint_url: uri },
      events_supported: [
        `${CAEP}/session-revoked`,
        `${CAEP}/credential-change`,
        `${CAEP}/session-established`,
        `${RISC}/account-disabled`,
        `${RISC}/account-enabled`,
        `${RISC}/account-purged`,
      ],
      events_requested: [`${CAEP}/session-revoked`, 'urn:example:unknown'],
      events_delivered: [`${CAEP}/session-revoked`],
      min_verification_interval: 60,
      description: 'The first one',
    };
    expect([created.status, created.json]).toEqual([201, stream]);
    const read = await program.send('GET', `/ssf/stream?stream_id=${id}`);
    expect([read.status, read.json, read.headers.get('cache-control')]).toEqual([
      200,
      stream,
      expect.stringContaining('no-store'),
    ]);
    expect((await program.send('GET', '/ssf/stream')).json).toEqual([stream]);
    const [kept] = await rows<{ sealed: string }>(
      app.dataSource,
      'SELECT authorization_sealed AS sealed FROM signal_streams WHERE id = $1',
      [id],
    );
    expect(kept?.sealed).toMatch(/^eyJ/);
    expect(kept?.sealed).not.toContain('planted-secret');

    const changed = await program.send('PATCH', '/ssf/stream', {
      stream_id: id,
      iss: app.baseUrl,
      events_requested: [`${CAEP}/session-established`],
    });
    const now = {
      ...stream,
      events_requested: [`${CAEP}/session-established`],
      events_delivered: [`${CAEP}/session-established`],
    };
    expect([changed.status, changed.json]).toEqual([200, now]);
    const replaced = await program.send('PUT', '/ssf/stream', { stream_id: id });
    const { events_requested: _, description: __, ...rest } = stream;
    expect([replaced.status, replaced.json]).toEqual([
      200,
      {
        ...rest,
        delivery: { method: 'urn:ietf:rfc:8936', endpoint_url: `${app.baseUrl}/ssf/poll/${id}` },
        events_delivered: stream.events_supported.filter((uri_) => !uri_.endsWith('established')),
      },
    ]);
    expect((await program.send('DELETE', `/ssf/stream?stream_id=${id}`)).status).toBe(204);
    expect((await program.send('GET', `/ssf/stream?stream_id=${id}`)).status).toBe(404);
    expect((await program.send('GET', '/ssf/stream')).json).toEqual([]);
  });

  it('is one for each application: 20 creations at once leave one, and 19 are told so', async () => {
    const { program } = await newGround();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => program.send('POST', '/ssf/stream', POLL)),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([
      201,
      ...Array.from({ length: 19 }, () => 409),
    ]);
    expect((await program.send('GET', '/ssf/stream')).json).toHaveLength(1);
  });

  it('keeps its Authorization header over a PATCH, and loses it with its address or by a PUT', async () => {
    const { program } = await newGround();
    const push = (endpoint_url: string, authorization_header?: string) => ({
      delivery: {
        method: 'urn:ietf:rfc:8935',
        endpoint_url,
        ...(authorization_header === undefined ? {} : { authorization_header }),
      },
    });
    const created = await program.send(
      'POST',
      '/ssf/stream',
      push('http://127.0.0.1:9/a', 'Basic x'),
    );
    const of = { stream_id: created.json.stream_id as string };
    const has = async () => {
      const [row] = await rows<{ has: boolean }>(
        app.dataSource,
        'SELECT authorization_sealed IS NOT NULL AS has FROM signal_streams WHERE id = $1',
        [of.stream_id],
      );
      return row?.has;
    };
    await program.send('PATCH', '/ssf/stream', { ...of, description: 'other' });
    expect(await has()).toBe(true);
    await program.send('PATCH', '/ssf/stream', { ...of, ...push('http://127.0.0.1:9/b') });
    expect(await has()).toBe(false);
    await program.send('PATCH', '/ssf/stream', {
      ...of,
      ...push('http://127.0.0.1:9/b', 'Basic y'),
    });
    expect(await has()).toBe(true);
    await program.send('PUT', '/ssf/stream', { ...of, ...push('http://127.0.0.1:9/b') });
    expect(await has()).toBe(false);
  });

  it('refuses what the transmitter supplies if it differs, and addresses that must not be called', async () => {
    const { program } = await newGround();
    const streamId = await createStream(program);
    const wrong = [
      { iss: 'https://other.example' },
      { aud: 'other' },
      { aud: [program.application.clientId, 'other'] },
      { events_supported: [] },
      { events_delivered: [] },
      { min_verification_interval: 1 },
      { delivery: { method: 'urn:ietf:rfc:8936', endpoint_url: 'https://other.example' } },
      { delivery: { method: 'urn:other', endpoint_url: 'https://other.example' } },
      { delivery: { method: 'urn:ietf:rfc:8935' } },
      { delivery: { method: 'urn:ietf:rfc:8935', endpoint_url: 'http://10.0.0.1/' } },
      { delivery: { method: 'urn:ietf:rfc:8935', endpoint_url: 'https://169.254.169.254/' } },
      { delivery: { method: 'urn:ietf:rfc:8935', endpoint_url: 'file:///etc/passwd' } },
      {
        delivery: {
          method: 'urn:ietf:rfc:8935',
          endpoint_url: 'http://127.0.0.1:9/',
          authorization_header: 'Basic x\r\nHost: y',
        },
      },
      { description: 'two\nlines' },
    ];
    for (const body of wrong) {
      const answer = await program.send('PATCH', '/ssf/stream', { stream_id: streamId, ...body });
      expect([body, answer.status, answer.json.error]).toEqual([body, 400, 'invalid_request']);
    }
    const right = await program.send('PATCH', '/ssf/stream', {
      stream_id: streamId,
      aud: [program.application.clientId],
      delivery: {
        method: 'urn:ietf:rfc:8936',
        endpoint_url: `${app.baseUrl}/ssf/poll/${streamId}`,
      },
    });
    expect(right.status).toBe(200);
  });

  it('of another application or organization is not there', async () => {
    const { client, program } = await newGround();
    const streamId = await createStream(program);
    const colleague = await newProgram(app, client);
    const stranger = (await newGround()).program;
    await createStream(stranger);
    const of = { stream_id: streamId };
    const subject = { format: 'email', email: 'a@b.example' };
    for (const other of [colleague, stranger]) {
      const answers = [
        await other.send('GET', `/ssf/stream?stream_id=${streamId}`),
        await other.send('PATCH', '/ssf/stream', of),
        await other.send('PUT', '/ssf/stream', of),
        await other.send('DELETE', `/ssf/stream?stream_id=${streamId}`),
        await other.send('GET', `/ssf/status?stream_id=${streamId}`),
        await other.send('POST', '/ssf/status', { ...of, status: 'disabled' }),
        await other.send('POST', '/ssf/verify', of),
        await other.send('POST', '/ssf/subjects/add', { ...of, subject }),
        await other.send('POST', '/ssf/subjects/remove', { ...of, subject }),
        await other.send('POST', `/ssf/poll/${streamId}`, { returnImmediately: true }),
      ];
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 404));
    }
    const read = await program.send('GET', `/ssf/status?stream_id=${streamId}`);
    expect(read.json).toEqual({ stream_id: streamId, status: 'enabled' });
  });

  it('is verified once a minute, also if 20 requests come at once', async () => {
    const { program } = await newGround();
    const streamId = await createStream(program);
    const ask = () => program.send('POST', '/ssf/verify', { stream_id: streamId, state: 'one' });
    const answers = await Promise.all(Array.from({ length: 20 }, ask));
    const statuses = answers.map(({ status }) => status).toSorted();
    expect(statuses).toEqual([204, ...Array.from({ length: 19 }, () => 429)]);
    expect(answers.find(({ status }) => status === 429)?.headers.get('retry-after')).toBe('60');
    expect((await signalsOf(app, streamId)).map(({ type, body }) => [type, body])).toEqual([
      ['verification', { state: 'one' }],
    ]);
    await rows(
      app.dataSource,
      "UPDATE signal_streams SET verified_at = verified_at - interval '1 minute' WHERE id = $1",
      [streamId],
    );
    expect((await ask()).status).toBe(204);
  });
});
