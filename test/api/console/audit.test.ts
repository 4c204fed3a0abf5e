import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { SEARCH_BOUNDS } from '#domain/audit/audit-search.repository.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { newAddress, type Answer } from '../../support/client.js';
import { addMember, idOf, orgApi } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';
import { atScale } from '../../support/scale.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

const ADA = 'ada@audit-page.example';
const DAY = 86_400_000;

let app: TestApp;
let ada: EnrolledUser;
let org: string;
beforeAll(async () => {
  app = await startTestApp();
  ada = await app.enrolled(ADA);
  org = await orgOf(ADA);
});
afterAll(() => app.close());

async function orgOf(email: string): Promise<string> {
  const [row] = await rows<{ org_id: string }>(
    app.dataSource,
    'SELECT org_id FROM users WHERE email = $1',
    [email],
  );
  return row?.org_id ?? '';
}

const open = (path: string, user: EnrolledUser = ada): Promise<Answer> =>
  user.client.get(path, { address: newAddress() });

/** Returns the text of a page: without tags, with entities decoded and one space between words. */
const textOf = (html: string) =>
  html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
    .replaceAll(/\s+/g, ' ');

/** Returns the events in the list of a page, each as the text of its line and its facts. */
function eventsOf({ text }: Answer): string[] {
  return (text.match(/<li data-event=[\s\S]*?<\/li>/g) ?? []).map((line) => textOf(line).trim());
}

const linkOf = ({ text }: Answer, name: string) => {
  const links = [...text.matchAll(/<a [^>]*href="([^"]*)"[^>]*>([\s\S]*?)<\/a>/g)];
  const link = links.find(([, , inner = '']) => textOf(inner).trim() === name);
  return link?.[1]?.replaceAll('&amp;', '&');
};

/** Returns noon (UTC) of the latest Tuesday before today. */
function lastTuesday(): Date {
  const today = Math.floor(Date.now() / DAY) * DAY;
  const weekday = new Date(today).getUTCDay();
  return new Date(today - (((weekday - 2 + 6) % 7) + 1) * DAY + DAY / 2);
}

describe('the page of the audit log', () => {
  it('answers "who logged in to what last Tuesday" with person, application or credential, and time', async () => {
    const grace = await addMember(app, ADA, 'grace@audit-page.example');
    const at = lastTuesday();
    const write = (type: string, details: object, client: string | null, when: Date) =>
      rows(
        app.dataSource,
        `INSERT INTO audit_events (id, type, class, actor_id, subject_id, org_id, details, client_name, created_at)
         VALUES ($1, $2, 'auth', $3, $3, $4, $5, $6, $7)`,
        [randomUUID(), type, grace, org, JSON.stringify(details), client, when],
      );
    const later = (minutes: number) => new Date(at.getTime() + minutes * 60_000);
    await write('login_success', { key_id: randomUUID(), key_name: 'Safe' }, null, later(0));
    await write('oauth_token_issued', { client_id: 'wiki-1' }, 'The Wiki', later(1));
    await write('ssh_credential', { serial: '4711' }, null, later(2));
    await write('oauth_token_issued', { client_id: 'late' }, 'Day after', later(12 * 60));
    await write('oauth_token_issued', { client_id: 'early' }, 'Day before', later(-12 * 60 - 1));
    const href = linkOf(await open('/admin/audit'), 'Who logged in to what last Tuesday?');
    const day = at.toISOString().slice(0, 10);
    expect(href).toBe(`/admin/audit?type=access&from=${day}&to=${day}`);
    const events = eventsOf(await open(href ?? ''));
    expect(events).toHaveLength(3);
    expect(events[0]).toMatch(
      /^12:02:00 grace@audit-page\.example .*12:02:00 UTC.*SSH certificate 4711 /,
    );
    expect(events[1]).toMatch(
      /^12:01:00 grace@.* logged in to The Wiki .* Application or credential The Wiki /,
    );
    expect(events[2]).toMatch(
      /^12:00:00 grace@.* with the key “ Safe ” .* Application or credential Key Safe /,
    );
  });

  it('shows names as they were: of a renamed and a removed user, and of a removed application', async () => {
    const bob = await addMember(app, ADA, 'bob@audit-page.example');
    await orgApi(ada.client, 'POST', `/members/${bob}/promote`);
    await rows(
      app.dataSource,
      "UPDATE users SET email = 'robert@audit-page.example' WHERE id = $1",
      [bob],
    );
    await orgApi(ada.client, 'POST', `/members/${bob}/remove`);
    const body = { name: 'Shop', type: 'web', redirect_uris: ['https://shop.example/'] };
    const { json } = await ada.client.post('/api/v1/applications', body, { address: newAddress() });
    await ada.client.send('DELETE', `/api/v1/applications/${json.client_id as string}`, {
      address: newAddress(),
    });
    const members = eventsOf(await open(`/admin/audit?person=${bob}`));
    expect(members[0]).toContain('ada@audit-page.example removed robert@audit-page.example');
    expect(members[1]).toContain('ada@audit-page.example made bob@audit-page.example an admin');
    expect(eventsOf(await open('/admin/audit?person=bob@audit-page.example'))).toHaveLength(1);
    expect(eventsOf(await open('/admin/audit?client=shop'))).toHaveLength(2);
  });

  it('names the key of a login, and keeps its name after the key was renamed', async () => {
    const user = await app.enrolled('kim@audit-page.example');
    const { keys } = (await user.client.get('/v1/keys')).json;
    await user.client.send('PATCH', `/v1/keys/${keys[0].id as string}`, { body: { name: 'Ring' } });
    await user.client.logIn(user.key);
    const other = app.client();
    await other.logIn(user.key);
    await user.client.send('PATCH', `/v1/keys/${keys[0].id as string}`, { body: { name: 'Desk' } });
    await other.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    const events = eventsOf(await open('/admin/audit?person=kim@audit-page.example&type=access'));
    expect(events.some((event) => event.includes('logged in with the key “ Ring ”'))).toBe(true);
    expect(events.join()).not.toContain('Desk');
    expect(eventsOf(await open(`/admin/audit?type=login_success&key=${keys[0].id}`))).toHaveLength(
      2,
    );
  });

  it('pages by links: each event once, while new ones arrive', async () => {
    const user = await app.enrolled('ada@audit-paging.example');
    const own = await orgOf('ada@audit-paging.example');
    await rows(app.dataSource, 'DELETE FROM audit_events WHERE org_id = $1', [own]);
    const insert = (n: number) =>
      rows(
        app.dataSource,
        `INSERT INTO audit_events (id, type, class, org_id, details)
         SELECT gen_random_uuid(), 'org_domain_added', 'admin', $1, jsonb_build_object('domain', 'd' || n || '.example')
         FROM generate_series($2::int, $2::int + 119) n`,
        [own, n],
      );
    await insert(0);
    const seen: string[] = [];
    let path: string | undefined = '/admin/audit?type=organization';
    while (path !== undefined) {
      const page: Answer = await open(path, user);
      seen.push(...eventsOf(page).map((event) => / (d\d+)\.example/.exec(event)?.[1] ?? ''));
      path = linkOf(page, 'Older events');
      await insert(seen.length * 1000);
    }
    expect(seen.toSorted()).toEqual(Array.from({ length: 120 }, (_, n) => `d${n}`).toSorted());
  });

  it('stops a search for rare events, says how far it came, and leads further', async () => {
    const user = await app.enrolled('ada@audit-rare.example');
    const own = await orgOf('ada@audit-rare.example');
    const bounds = { ...SEARCH_BOUNDS };
    const lookBack = atScale({ small: 2_500, full: bounds.lookBack });
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, org_id, created_at, details)
       SELECT gen_random_uuid(), CASE n WHEN 1 THEN 'session_ended' ELSE 'oauth_token_issued' END, 'auth', $1,
              '2026-01-01T00:00:00Z'::timestamptz + n * interval '1 second', '{"client_id": "often"}'
       FROM generate_series(1, ${lookBack} + 2000) AS n`,
      [own],
    );
    onTestFinished(() => void Object.assign(SEARCH_BOUNDS, bounds));
    SEARCH_BOUNDS.lookBack = lookBack;
    const first = await open('/admin/audit?type=logins&client=often', user);
    expect(eventsOf(first)).toEqual([]);
    expect(textOf(first.text)).toContain('The log was searched back to 2026-01-01T00:33:21.000Z');
    const second = await open(linkOf(first, 'Search further') ?? '', user);
    expect(eventsOf(second)).toHaveLength(1);
    expect(linkOf(second, 'Search further')).toBeUndefined();
    expect(linkOf(second, 'Newest events')).toBe('/admin/audit?type=logins&client=often');
  });

  it('draws a timeline, whose table has the same numbers', async () => {
    const user = await app.enrolled('ada@audit-timeline.example');
    const own = await orgOf('ada@audit-timeline.example');
    await rows(app.dataSource, 'DELETE FROM audit_events WHERE org_id = $1', [own]);
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, org_id, created_at)
       SELECT gen_random_uuid(), CASE n % 3 WHEN 0 THEN 'login_failed' ELSE 'logout' END, 'auth', $1,
              '2026-05-05T00:00:00Z'::timestamptz + n * interval '30 minutes'
       FROM generate_series(0, 47) AS n`,
      [own],
    );
    const { text } = await open('/admin/audit?from=2026-05-05&to=2026-05-05', user);
    expect(text).toContain('A timeline of 48 events by kind.');
    const bars = [...text.matchAll(/<rect class="k-(\w+)" x=/g)].map(([, kind]) => kind);
    expect(bars.filter((kind) => kind === 'logins')).toHaveLength(24);
    expect(bars.filter((kind) => kind === 'refusals')).toHaveLength(16);
    const [, table = ''] = /The timeline as a table([\s\S]*?)<\/table>/.exec(text) ?? [];
    const cells = (label: string) =>
      [...table.matchAll(new RegExp(`data-label="${label}">(\\d+)<`, 'g'))].map(([, n]) =>
        Number(n),
      );
    const sum = (numbers: number[]) => numbers.reduce((total, n) => total + n, 0);
    expect([sum(cells('Logins')), sum(cells('Refusals')), sum(cells('All'))]).toEqual([32, 16, 48]);
    expect(cells('All')).toEqual(Array<number>(24).fill(2));
  });

  it('filters by the parameters user and email of the API as by person, and keeps them', async () => {
    const lin = 'lin@audit-page.example';
    const [lins, may] = [
      await addMember(app, ADA, lin),
      await addMember(app, ADA, 'may@audit-page.example'),
    ];
    for (const id of [lins, may]) await orgApi(ada.client, 'POST', `/members/${id}/promote`);
    const expected = eventsOf(await open(`/admin/audit?person=${lins}`));
    expect(expected.length).toBeGreaterThan(0);
    for (const [query, value] of [
      [`user=${lins}`, lins],
      ['email=lin%40audit-page.example', lin],
    ] as const) {
      const page = await open(`/admin/audit?${query}`);
      expect(eventsOf(page)).toEqual(expected);
      expect(page.text).toContain(`value="${value}"`);
      expect(linkOf(page, 'Export as NDJSON')).toBe(
        `/api/v1/org/audit-events?${query}&format=ndjson`,
      );
      const [, about] = /href="([^"]*)"><bdi>What did this person get\?/.exec(page.text) ?? [];
      expect(about).toBe(`/admin/audit?type=credentials&amp;person=${encodeURIComponent(value)}`);
      const saving = await open(linkOf(page, 'Save this question') ?? '');
      expect(saving.text).toContain(`name="${query.split('=')[0]}" value="${value}"`);
    }
    // An event must match every filter: what ada did to lin matches `user` lin and `person` ada,
    // but not `email` may.
    const both = await open(
      `/admin/audit?user=${lins}&person=ada%40audit-page.example&type=changes`,
    );
    expect(eventsOf(both)).toEqual([expect.stringContaining(lin)]);
    expect(
      eventsOf(await open(`/admin/audit?user=${lins}&email=may%40audit-page.example`)),
    ).toEqual([]);
  });

  it.each([
    ['user', 'lin', 'must be the id of a user'],
    ['email', 'lin', 'must be an e-mail address'],
  ])('searches nothing by a %s that is none, and says why', async (name, text, problem) => {
    const page = await open(`/admin/audit?${name}=${text}`);
    expect(textOf(page.text)).toContain(problem);
    expect([eventsOf(page), linkOf(page, 'Export as CSV')]).toEqual([[], undefined]);
  });

  it('has no field for user and email unless they are given', async () => {
    const { text } = await open('/admin/audit');
    expect([/name="user"/.test(text), /name="email"/.test(text)]).toEqual([false, false]);
  });

  it('explains a filter that it cannot use, and keeps what was typed', async () => {
    const page = await open('/admin/audit?ip=10.1&from=&to=&person=ada%40audit-page.example');
    expect(page.status).toBe(200);
    expect(textOf(page.text)).toContain('must be an address or a network');
    expect(page.text).toContain('value="10.1"');
    expect(page.text).toContain('value="ada@audit-page.example"');
    expect(eventsOf(page)).toEqual([]);
  });

  it('leads to exports of the same search, which have all of its events', async () => {
    const page = await open('/admin/audit?type=members');
    const ids = eventsOf(page).length;
    const csv = await open(linkOf(page, 'Export as CSV') ?? '');
    expect(csv.headers.get('content-type')).toMatch(/^text\/csv/);
    expect(csv.text.trim().split('\r\n')).toHaveLength(ids + 1);
    const lines = await open(linkOf(page, 'Export as NDJSON') ?? '');
    expect(lines.text.trim().split('\n')).toHaveLength(ids);
    // Since yesterday, because the tests before this one may have run before midnight in UTC.
    const [from, to] = [Date.now() - DAY, Date.now()].map((at) =>
      new Date(at).toISOString().slice(0, 10),
    );
    const dayPage = await open(`/admin/audit?type=members&from=${from}&to=${to}`);
    const ofDay = await open(linkOf(dayPage, 'Export as CSV') ?? '');
    expect(ofDay.text).toBe(csv.text);
  });
});

describe('the page of an event', () => {
  it('has its request, origin and details, its people, and the events of the same request', async () => {
    const id = await addMember(app, ADA, 'dan@audit-page.example');
    const request = randomUUID();
    await ada.client.send('POST', `/api/v1/org/members/${id}/promote`, {
      address: newAddress(),
      headers: { 'x-fapi-interaction-id': request },
    });
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, org_id, request_id) VALUES ($1, 'logout', 'auth', $2, $3)`,
      [randomUUID(), org, request],
    );
    const list = await open(`/admin/audit?request=${request}&type=admin_promote`);
    const [, href = ''] = /data-events[^>]*>[\s\S]*?<a href="([^"]+)"/.exec(list.text) ?? [];
    const page = await open(href);
    expect(page.status).toBe(200);
    const text = textOf(page.text);
    expect(text).toContain('ada@audit-page.example made dan@audit-page.example an admin');
    expect(text).toContain(request);
    expect(text).toContain('node'); // the user agent of fetch in Node
    expect(linkOf(page, 'dan@audit-page.example')).toBe(`/admin/members/${id}`);
    expect(linkOf(page, 'Events of this request')).toBe(`/admin/audit?request=${request}`);
    const [, same = ''] = /data-same-request>([\s\S]*?)<\/ul>/.exec(page.text) ?? [];
    expect(same.match(/<li /g)).toHaveLength(1);
    await orgApi(ada.client, 'POST', `/members/${id}/remove`);
    const later = await open(href);
    expect(textOf(later.text)).toContain('dan@audit-page.example , no member now');
    expect(linkOf(later, 'dan@audit-page.example')).toBeUndefined();
  });

  it('names the security key and its model, with the values of the log after them', async () => {
    const key = randomUUID();
    const aaguid = 'd7781e5d-e353-46aa-afe2-3ca49f13332a';
    const details = { key_id: key, key_name: 'Ring', aaguid };
    const id = randomUUID();
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, org_id, details) VALUES ($1, 'login_success', 'auth', $2, $3)`,
      [id, org, JSON.stringify(details)],
    );
    const text = textOf((await open(`/admin/audit/${id}`)).text);
    expect(text).toContain(`Security key Ring key_id ${key}`);
    expect(text).toMatch(new RegExp(`Model of the security key YubiKey 5[^<]* aaguid ${aaguid}`));
  });

  it('of another organization is 404, and no filter and no saved question shows it', async () => {
    const eve = await app.enrolled('eve@other-audit.example');
    const [foreign] = await rows<{ id: string; request_id: string; ip: string }>(
      app.dataSource,
      `SELECT id, request_id, host(ip) AS ip FROM audit_events WHERE org_id = $1 AND subject_email = $2 LIMIT 1`,
      [org, ADA],
    );
    const id = await idOf(app, ADA);
    for (const path of [foreign?.id, foreign?.id.toUpperCase(), randomUUID(), 'x', '%00']) {
      expect((await open(`/admin/audit/${path}`, eve)).status, path).toBe(404);
    }
    expect((await open(`/admin/audit/${foreign?.id}`)).status).toBe(200);
    const filters = [
      `person=${id}`,
      `person=${ADA}`,
      'person=ada',
      'client=svc-cli',
      `ip=${foreign?.ip}`,
      'ip=0.0.0.0/0',
      `request=${foreign?.request_id}`,
      'type=access',
      '',
    ];
    for (const filter of filters) {
      const { text } = await open(`/admin/audit?${filter}`, eve);
      expect(
        text.replaceAll(`value="${ADA}"`, '').replaceAll(`person ${ADA}`, ''),
        filter,
      ).not.toMatch(/data-label="Person"><bdi>ada@/);
    }
    const saved = { name: 'Of Ada', person: ADA };
    await orgApi(ada.client, 'POST', '/audit-questions', saved);
    expect((await open('/admin/audit/questions', eve)).text).not.toContain('Of Ada');
    expect((await open('/admin/audit', eve)).text).not.toContain('Of Ada');
    expect((await open('/admin/audit')).text).toContain('Of Ada');
  });
});

describe('the pages of the audit log', () => {
  it('are for admins alone, and refuse a demoted admin at once', async () => {
    const owner = await app.enrolled('ada@audit-demoted.example');
    const event = (await orgApi(owner.client, 'GET', '/audit-events?limit=1')).json.events[0].id;
    const member = await app.enrolled('bob@audit-demoted.example');
    const paths = [
      '/admin/audit',
      '/admin/audit?type=access',
      '/admin/audit/questions',
      `/admin/audit/${event}`,
    ];
    for (const path of paths) {
      expect((await open(path, owner)).status).toBe(200);
      expect((await open(path, member)).status).toBe(403);
      const visitor = await app.client().get(path);
      expect(visitor.headers.get('location')).toBe(
        `/login?redirect_to=${encodeURIComponent(path)}`,
      );
    }
    await rows(
      app.dataSource,
      "UPDATE users SET is_org_admin = false WHERE email LIKE '%@audit-demoted.example'",
    );
    for (const path of paths) expect((await open(path, owner)).status, path).toBe(403);
  });
});
