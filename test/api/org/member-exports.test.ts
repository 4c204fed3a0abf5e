import { request as httpRequest, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TenantWork } from '../../../src/platform/database/tenants/tenant-work.js';
import { asProgram, furtherAdmin, madeApiToken } from '../../support/api-tokens.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { recordsOf } from '../../support/csv.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';
import { atScale } from '../../support/scale.js';

const ADMIN = 'ada@files.example';
const MODELS = {
  fips: 'c1f9a0bc-1dd2-404a-b27f-8e29047a43fd',
  plain: 'ee882879-721c-4913-9775-3dfcce97072a',
} as const;

/** The number of members of the large organization, and of the characters of each name. */
const CROWD = atScale({ small: 3_000, full: 30_000 });
const LONG_NAME = atScale({ small: 8_000, full: 2_000 });

/**
 * The number of members that one INSERT adds, so that it ends before its time limit even on a slow
 * machine.
 */
const AT_ONCE = 5_000;

let app: TestApp;
let ada: Client;
let eve: Client;
beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada } = await app.enrolled(ADMIN));
  ({ client: eve } = await app.enrolled('eve@other-files.example'));
  await addPeople(ADMIN, 703, 'crowd', 'Crowd ');
  await addPeople('eve@other-files.example', 1_010, 'other', 'Other ');
});
afterAll(() => app.close());

/**
 * Inserts members into the organization of a user. In turn they have two keys, one key and none.
 * The first key of each is of a FIPS-certified model.
 */
async function addPeople(of: string, many: number, address: string, name: string) {
  const orgId = await organizationOf(of);
  for (let first = 1; first <= many; first += AT_ONCE) {
    const last = Math.min(many, first + AT_ONCE - 1);
    await rows(
      app.dataSource,
      `WITH people AS (
         INSERT INTO users (id, org_id, email, name, active)
         SELECT gen_random_uuid(), $1, $2 || n || '@files.example', $3 || n, n % 10 <> 0
         FROM generate_series($4::int, $5::int) n
         RETURNING id, substring(email FROM '\\d+')::int AS n
       )
       INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, aaguid,
                                   user_verification, name, last_used_at)
       SELECT gen_random_uuid(), u.id, uuid_send(gen_random_uuid()), 'pem', 0,
              CASE k WHEN 0 THEN 'packed' ELSE 'fido-u2f' END,
              CASE k WHEN 0 THEN $6::uuid ELSE $7::uuid END, k = 0, 'Key, "' || k || '"',
              CASE WHEN u.n % 5 <> 0 THEN now() - make_interval(days => u.n % 400) END
       FROM people u, generate_series(0, 1) k
       WHERE u.n % 3 <> 0 AND (k = 0 OR u.n % 3 = 1)`,
      [orgId, address, name, first, last, MODELS.fips, MODELS.plain],
    );
  }
}

async function organizationOf(email: string): Promise<string> {
  const sql = 'SELECT org_id FROM users WHERE email = $1';
  const [row] = await rows<{ org_id: string }>(app.dataSource, sql, [email]);
  return row?.org_id ?? '';
}

type Json = Record<string, unknown>;

/** Returns the entries of all pages of a list of the API. */
async function pagesOf(client: Client, list: 'members' | 'keys', query = ''): Promise<Json[]> {
  const all: Json[] = [];
  for (let after = ''; ;) {
    const page = (await orgApi(client, 'GET', `/${list}?limit=200${query}${after}`)).json;
    all.push(...(page[list] as Json[]));
    if (page.next === null) return all;
    after = `&after=${page.next}`;
  }
}

const fileOf = (list: string, format: string, query = '', client = ada): Promise<Answer> =>
  orgApi(client, 'GET', `/${list}?format=${format}${query}`);

const linesOf = ({ text }: Answer): Json[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Json);

/** Returns the text of a CSV cell for a JSON value of the API. */
function cellOf(value: unknown): string {
  if (Array.isArray(value)) return value.map((item) => item ?? 'unknown').join(', ');
  if (value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Returns the cursor from which an export goes on after the entry of a line. */
const placeOf = (json: Json = {}) =>
  [json['id'], json['member_id'], json['key_id']].filter((id) => typeof id === 'string').join('.');

const asCells = (json: Json) =>
  Object.fromEntries(Object.entries(json).map(([name, value]) => [name, cellOf(value)]));

describe.each(['members', 'keys'] as const)('the file of %s', (list) => {
  it('has everyone, once, as NDJSON and as CSV, with what the pages say', async () => {
    const pages = await pagesOf(ada, list);
    expect(pages.length).toBeGreaterThan(700);
    const ndjson = await fileOf(list, 'ndjson');
    expect(ndjson.headers.get('content-type')).toBe('application/x-ndjson');
    expect(linesOf(ndjson)).toEqual(pages);
    const csv = await fileOf(list, 'csv');
    expect(csv.headers.get('content-type')).toMatch(/^text\/csv/);
    const disposition = `attachment; filename="${list}.csv"`;
    expect(csv.headers.get('content-disposition')).toBe(disposition);
    expect(recordsOf(csv.text)).toEqual(pages.map(asCells));
    const headers = { accept: 'text/csv' };
    const accepted = await orgApi(ada, 'GET', `/${list}`, undefined, headers);
    expect(accepted.text).toBe(csv.text);
    expect(accepted.headers.get('vary')).toMatch('Accept');
  });

  it.each([
    'fips=false',
    'fips=true&status=inactive',
    'last_use=200',
    'q=crowd12',
    'model=unknown',
  ])('has those alone who match %s', async (filter) => {
    const query = `&${filter}`;
    const pages = await pagesOf(ada, list, query);
    expect(linesOf(await fileOf(list, 'ndjson', query))).toEqual(pages);
    expect(pages.length).toBeGreaterThan(0);
  });

  it('goes on after its last whole line', async () => {
    const all = linesOf(await fileOf(list, 'ndjson'));
    const place = placeOf(all[550]);
    expect(linesOf(await fileOf(list, 'ndjson', `&after=${place}`))).toEqual(all.slice(551));
    const few = linesOf(await fileOf(list, 'ndjson', `&limit=3&after=${place}`));
    expect(few).toEqual(all.slice(551, 554));
  });

  it('never has a member of another organization', async () => {
    const theirs = linesOf(await fileOf(list, 'ndjson', '', eve));
    expect(theirs.length).toBeGreaterThan(10);
    const ours = new Set((await fileOf(list, 'ndjson')).text.match(/[\da-f-]{36}/g));
    const ids = theirs.flatMap((line) => [line['id'], line['member_id'], line['key_id']]);
    expect(ids.filter((id) => ours.has(String(id)))).toEqual([]);
    const emails = linesOf(await fileOf(list, 'ndjson', `&after=${placeOf(theirs.at(-1))}`)).map(
      ({ email }) => email,
    );
    expect(emails.filter((email) => String(email).startsWith('other'))).toEqual([]);
  });

  it('gives a spreadsheet no formula', async () => {
    const name = '=HYPERLINK("https://evil.example")';
    const named = 'UPDATE users SET name = $1 WHERE email = $2';
    await rows(app.dataSource, named, [name, ADMIN]);
    const [own] = recordsOf((await fileOf(list, 'csv', '&q=ada')).text);
    await rows(app.dataSource, named, ['Ada', ADMIN]);
    expect(own?.['name']).toBe(`'${name}`);
  });

  it('is refused to members and strangers, and for a text that matches too many', async () => {
    const { client: bob } = await app.enrolled(`bob-${list}@files.example`);
    expect((await fileOf(list, 'csv', '', bob)).status).toBe(403);
    expect((await fileOf(list, 'csv', '', app.client())).status).toBe(401);
    const many = await fileOf(list, 'csv', '&q=other', eve);
    expect([many.status, many.json.code]).toEqual([400, 'too_many']);
    for (const query of [
      'format=xml',
      'format=csv&sort=address',
      'format=csv&after=x',
      'group=x',
    ]) {
      const answer = await orgApi(ada, 'GET', `/${list}?${query}`);
      expect([query, answer.status, answer.json.code]).toEqual([query, 400, 'invalid_request']);
    }
  });

  it('ends in the middle when its reader is no admin any more', async () => {
    const bea = await furtherAdmin(app, ada, `bea-${list}@files.example`);
    const end = await whileRead(bea.client, list, () =>
      orgApi(ada, 'POST', `/members/${bea.id}/demote`),
    );
    expect(end).toMatchObject({ isWhole: false, status: 200 });
    expect(end.text.split('\n').length).toBeLessThan(700);
    expect((await fileOf(list, 'ndjson', '', bea.client)).status).toBe(403);
  });
});

/** Downloads a list as a file, and runs an action before the service reads the second batch. */
async function whileRead(client: Client, list: string, act: () => Promise<unknown>) {
  const work = app.nest.get(TenantWork, { strict: false });
  const original = work.costly.bind(work);
  let batches = 0;
  work.costly = async (...parameters) => {
    batches += 1;
    if (batches === 2) {
      work.costly = original;
      await act();
    }
    return original(...parameters);
  };
  try {
    return await readRaw(await openFile(client, `/api/v1/org/${list}?format=ndjson`));
  } finally {
    work.costly = original;
  }
}

function openFile(client: Client, path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = {
      cookie: `svc_session=${client.cookie('svc_session')}`,
      'x-forwarded-for': newAddress(),
    };
    const asked = httpRequest(`${app.baseUrl}${path}`, { headers });
    asked.once('error', reject).once('response', resolve).end();
  });
}

async function readRaw(response: IncomingMessage) {
  let text = '';
  try {
    for await (const chunk of response) text += String(chunk);
    return { status: response.statusCode, text, isWhole: true };
  } catch {
    return { status: response.statusCode, text, isWhole: false };
  }
}

describe('the keys of an organization', () => {
  it('fit the filters by model, FIPS and last use themselves', async () => {
    const all = await pagesOf(ada, 'keys');
    const found = async (query: string) =>
      (await pagesOf(ada, 'keys', `&${query}`)).map(({ key_id: id }) => id);
    const those = (fits: (key: Json) => boolean) => all.filter(fits).map(({ key_id: id }) => id);
    expect(await found('fips=true')).toEqual(those(({ aaguid }) => aaguid === MODELS.fips));
    expect(await found('fips=false')).toEqual(those(({ fips }) => fips === false));
    expect(await found('last_use=never')).toEqual(those(({ last_used_at: at }) => at === null));
    expect(await found('status=inactive')).toEqual(those(({ active }) => active === false));
    expect(await found('model=unknown')).toEqual(those(({ model }) => model === null));
    expect(await found('keys=none')).toEqual([]);
    expect(await found('role=admin&fips=true')).toEqual([]);
  });
});

describe('a program', () => {
  it('reads the file of the members by its API token, until the token ends', async () => {
    const { token, id } = await madeApiToken(ada, ['members:read']);
    const csv = await asProgram(app, token, 'GET', 'members?format=csv');
    expect(recordsOf(csv.text).length).toBeGreaterThan(703);
    const lines = await asProgram(app, token, 'GET', 'members?format=ndjson');
    expect(lines.text.trimEnd().split('\n')).toHaveLength(recordsOf(csv.text).length);
    expect((await asProgram(app, token, 'GET', '/api/v1/org/keys')).status).toBe(401);
    await orgApi(ada, 'DELETE', `/api-tokens/${id}`);
    expect((await asProgram(app, token, 'GET', 'members?format=csv')).status).toBe(401);
  });
});

describe('a large organization', () => {
  it('is read no faster than its file is sent, and no further when the reader is gone', async () => {
    const { client: cy } = await app.enrolled('cy@large-files.example');
    await addPeople('cy@large-files.example', CROWD, 'large', 'x'.repeat(LONG_NAME));
    await rows(app.dataSource, 'ANALYZE users, authenticators');
    const work = app.nest.get(TenantWork, { strict: false });
    const original = work.costly.bind(work);
    let batches = 0;
    work.costly = (...parameters) => {
      batches += 1;
      return original(...parameters);
    };
    try {
      const response = await openFile(cy, '/api/v1/org/members?format=ndjson');
      await new Promise((done) => response.once('data', done));
      response.pause();
      let whilePaused;
      do {
        whilePaused = batches;
        for (let turn = 0; turn < 10; turn += 1) {
          await rows(app.dataSource, 'SELECT count(*) FROM users');
        }
        // until no further batch is read, because the socket buffers are full
      } while (batches > whilePaused);
      // at most half of all batches (of 500 members) were read
      expect(whilePaused).toBeLessThanOrEqual(CROWD / 1000);
      response.on('error', () => undefined).destroy();
      await idOf(app, 'cy@large-files.example');
      expect(batches).toBeLessThanOrEqual(whilePaused + 1);
    } finally {
      work.costly = original;
    }
    const whole = await readRaw(await openFile(cy, '/api/v1/org/keys?format=csv'));
    expect(whole.isWhole).toBe(true);
    const keys = whole.text.match(
      /^"[\da-f-]{36}","large\d+@[^"]+","x+\d+","\w+","[\da-f-]{36}"/gm,
    );
    expect(new Set(keys).size).toBe(CROWD - Math.floor(CROWD / 3) + Math.ceil(CROWD / 3));
    expect(keys).toHaveLength(new Set(keys).size);
  });
});
