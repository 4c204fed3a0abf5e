import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Answer } from '../support/client.js';
import { rawExchange, requestBytes } from '../support/raw-http.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import {
  ENTERPRISE,
  expectScimError,
  insertUsers,
  made,
  patchOf,
  shown,
  withQuery,
} from '../support/scim-requests.js';

const KIB = 1024;

let app: TestApp;
let tenant: ScimTenant;
let user: Answer['json'];
let group: Answer['json'];
beforeAll(async () => {
  app = await startTestApp();
  tenant = await addTenant(app);
  user = await made(tenant, 'Users', { userName: randomUUID(), title: 'kept' });
  group = await made(tenant, 'Groups', { displayName: randomUUID() });
});
afterAll(() => app.close());

/** Expects a correct SCIM error with one of these statuses. */
function expectRefused(answer: Answer, statuses: readonly number[] = [400]): void {
  expect([statuses.includes(answer.status), answer.text]).toEqual([true, expect.any(String)]);
  expectScimError(answer, answer.status, answer.json.scimType as string | undefined);
}

const search = (path: string, body: unknown) => tenant.send('POST', `${path}/.search`, body);

describe('a filter', () => {
  const long = (part: string) => part.repeat(Math.floor((60 * KIB) / part.length));

  it.each<[string, string]>([
    ['nested parentheses', long('(')],
    ['parentheses that close', `${'('.repeat(30_000)}title pr${')'.repeat(30_000)}`],
    ['negated parentheses', long('not (')],
    ['an unterminated string', `title eq "${long('a')}`],
    ['an unterminated string of escapes', `title eq "${'\\"'.repeat(14 * KIB)}`],
    ['many strings', '"a" "'.repeat(7 * KIB)],
    ['brackets', long('emails[')],
    ['conditions', `title pr${long(' or title pr')}`],
    ['one word', long('a')],
    ['dots', `name${long('.a')}`],
    ['colons', long('urn:')],
    ['spaces', `title${long(' ')}pr`],
    ['8 KB of parentheses', '('.repeat(8 * KIB)],
    ['8 KB of conditions', 'title pr or '.repeat(600) + 'title pr'],
    ['8 KB of an unterminated string', `title eq "${'\\"'.repeat(4000)}`],
  ])('of %s is 400 invalidFilter, within the time limit', async (_, filter) => {
    for (const path of ['', '/Users', '/Groups']) {
      const before = process.cpuUsage();
      expectScimError(await search(path, { filter }), 400, 'invalidFilter');
      const used = process.cpuUsage(before); // CPU time, because other programs load the machine
      expect((used.user + used.system) / 1000).toBeLessThan(1000);
    }
  });

  it.each([
    '__proto__ pr',
    '__proto__.a eq "b"',
    'constructor eq "x"',
    'constructor.prototype pr',
    'emails[__proto__ eq "x"]',
    'name.constructor pr',
    'toString pr',
    'hasOwnProperty eq true',
    'title eq "\\u0000"',
    'title eq "\\ud800"',
    'id eq 42',
    'members eq 42',
    'title eq undefined',
    'title eq NaN',
    'title eq [1]',
    'title eq {}',
    "title eq 'x'",
    'title eq "x"; DROP TABLE users',
    'title eq "x" -- ',
  ])('%j is 400 invalidFilter', async (filter) => {
    expectScimError(
      await tenant.send('GET', withQuery('/Users', { filter })),
      400,
      'invalidFilter',
    );
    expectScimError(
      await tenant.send('GET', withQuery('/Groups', { filter })),
      400,
      'invalidFilter',
    );
  });

  it('compares any text as text', async () => {
    for (const value of [
      "'",
      "'; DROP TABLE users; --",
      '$1',
      '%',
      '_',
      '\\\\',
      '\\"',
      '\u{1f600}',
    ]) {
      const filter = `title eq "${value}" or userName co "${value}" or id eq "${value}"`;
      const answer = await search('/Users', { filter });
      expect([filter, answer.status, answer.json.totalResults]).toEqual([filter, 200, 0]);
    }
  });

  it('that is not text is 400', async () => {
    for (const filter of [42, true, {}, ['title pr'], [['title pr']]]) {
      expectRefused(await search('/Users', { filter }));
      expectRefused(await search('', { filter }));
    }
  });
});

describe('names with a meaning in JavaScript', () => {
  const NAMES = ['__proto__', 'constructor', 'constructor.prototype', 'prototype', 'toString'];
  // JSON text: in an object literal, `__proto__` would set the prototype.
  const json = (name: string, value: string) => `{"${name}":${value}}`;
  const polluted = '{"polluted":true,"value":"x"}';

  it('are unknown attributes in POST, PUT and whole-object PATCH', async () => {
    for (const name of NAMES) {
      const inside = json(name, polluted);
      const body = `{"userName":"${randomUUID()}","${name}":${polluted},"name":${inside},"emails":[${inside}],
        "${ENTERPRISE}":${inside}}`;
      const created = await tenant.send('POST', '/Users', body);
      expect([created.status, created.json.active]).toEqual([201, true]);
      expect(created.text).not.toContain('polluted');
      const put = await tenant.send('PUT', `/Users/${created.json.id}`, body);
      expect([put.status, put.json.active]).toEqual([200, true]);
      const patch = `{"Operations":[{"op":"add","value":${json(name, polluted)}},
        {"op":"replace","value":{"name":${inside}}},{"op":"add","path":"${ENTERPRISE}","value":${inside}}]}`;
      const patched = await tenant.send('PATCH', `/Users/${created.json.id}`, patch);
      expect([patched.status, patched.json.active]).toEqual([200, true]);
      expect(patched.text).not.toContain('polluted');
    }
    expect('polluted' in {}).toBe(false);
  });

  it('are unknown attributes in paths', async () => {
    for (const name of NAMES) {
      for (const path of [name, `${name}.polluted`, `name.${name}`, `emails.${name}`]) {
        for (const op of ['add', 'replace', 'remove']) {
          const answer = await tenant.send(
            'PATCH',
            `/Users/${user.id}`,
            patchOf({ op, path, value: 'x' }),
          );
          expectScimError(answer, 400, 'invalidPath');
        }
      }
      const elsewhere = patchOf({ op: 'replace', path: `urn:x:${name}`, value: 'x' });
      const ignored = await tenant.send('PATCH', `/Users/${user.id}`, elsewhere);
      expect([name, ignored.status, ignored.json.title]).toEqual([name, 200, 'kept']);
      const chosen = patchOf({ op: 'add', path: `emails[${name} eq "x"].value`, value: 'x' });
      expectScimError(
        await tenant.send('PATCH', `/Users/${user.id}`, chosen),
        400,
        'invalidFilter',
      );
    }
    expect('polluted' in {}).toBe(false);
  });

  it('have no effect in attributes, sortBy, parameters, bulk ids and messages', async () => {
    for (const name of NAMES) {
      for (const parameter of ['attributes', 'excludedAttributes', name]) {
        const answer = await tenant.send('GET', withQuery('/Users', { [parameter]: name }));
        expect([name, parameter, answer.status]).toEqual([name, parameter, 200]);
      }
      expectRefused(await tenant.send('GET', withQuery('/Users', { sortBy: name })));
      const operation = `{"method":"POST","path":"/Groups","bulkId":"${name}","data":{"displayName":"${randomUUID()}",
        "members":[{"value":"bulkId:toString"}],"__proto__":{"a":"bulkId:${name}"}},"__proto__":{"method":"DELETE"}}`;
      const bulk = await tenant.send(
        'POST',
        '/Bulk',
        `{"Operations":[${operation}],"__proto__":{}}`,
      );
      expect([bulk.status, bulk.json.Operations[0].status]).toEqual([200, '400']);
      expectRefused(await tenant.send('POST', '/Bulk', json(name, '{"Operations":[]}')));
      expectRefused(
        await tenant.send('PATCH', `/Users/${user.id}`, json(name, '{"Operations":[]}')),
      );
    }
  });
});

describe('characters that are not text', () => {
  it('are 400 in bodies', async () => {
    for (const bad of ['\\u0000', 'a\\u0000b', '\\ud800', '\\udc00x']) {
      for (const [method, path, body] of [
        ['POST', '/Users', `{"userName":"${bad}${randomUUID()}"}`],
        ['POST', '/Users', `{"userName":"${randomUUID()}","name":{"givenName":"${bad}"}}`],
        ['POST', '/Users', `{"userName":"${randomUUID()}","${bad}":1}`],
        ['PUT', `/Users/${user.id}`, `{"externalId":"${bad}"}`],
        [
          'PATCH',
          `/Users/${user.id}`,
          `{"Operations":[{"op":"add","path":"title","value":"${bad}"}]}`,
        ],
        ['PATCH', `/Users/${user.id}`, `{"Operations":[{"op":"add","path":"${bad}","value":"x"}]}`],
        ['POST', '/Groups', `{"displayName":"${bad}"}`],
        ['POST', '/Groups', `{"displayName":"x","members":[{"value":"${bad}"}]}`],
        ['POST', '/Users/.search', `{"filter":"title eq \\"${bad}\\""}`],
        ['POST', '/Users/.search', `{"cursor":"${bad}"}`],
        ['POST', '/Users/.search', `{"sortBy":"${bad}"}`],
        ['POST', '/Bulk', `{"Operations":[{"method":"DELETE","path":"/Users/${bad}"}]}`],
      ] as const) {
        expectScimError(await tenant.send(method, path, body), 400, 'invalidSyntax');
      }
    }
  });

  it('are 400 or 404 in addresses', async () => {
    for (const bad of ['%00', 'a%00b', '%ed%a0%80', '%ff', '%c0%80', '%', '%zz']) {
      for (const path of [`/Users/${bad}`, `/Groups/${bad}`, `/Schemas/${bad}`, `/${bad}`]) {
        expectRefused(await tenant.send('GET', path), [400, 404]);
      }
      expectRefused(await tenant.send('DELETE', `/Users/${bad}`), [400, 404]);
      const path = (field: string) => `/Users?${field}=${bad}`;
      expectRefused(await tenant.send('GET', path('filter')));
      expectRefused(await tenant.send('GET', path('cursor')));
      expectRefused(await tenant.send('GET', path('sortBy')));
      expectRefused(await tenant.send('GET', path('count')));
      const { status } = await tenant.send('GET', path('attributes'));
      expect([bad, [200, 400].includes(status)]).toEqual([bad, true]);
    }
  });

  it('are 400 in a cursor that was tampered with', async () => {
    await insertUsers(app, tenant, 3);
    const first = await tenant.send('GET', '/Users?cursor&count=1&sortBy=userName');
    const bytes = Buffer.from(first.json.nextCursor as string, 'base64url');
    const head = bytes.subarray(0, 28); // the search of the cursor (12 bytes) and an id (16 bytes)
    const text = (value: string) => Buffer.from(value, 'utf16le');
    for (const tail of ['\0', '=\0', '=\ud800', '=\udc00x', 'x', "' OR 1", '["', '\ud800']) {
      const cursor = Buffer.concat([head, text(tail)]).toString('base64url');
      const path = withQuery('/Users', { cursor, sortBy: 'userName' });
      expectScimError(await tenant.send('GET', path), 400, 'invalidCursor');
    }
    for (const wrong of [
      head.subarray(0, 27),
      head.subarray(0, 12),
      head.subarray(1),
      text('[]'),
    ]) {
      const path = withQuery('/Users', { cursor: wrong.toString('base64url'), sortBy: 'userName' });
      expectScimError(await tenant.send('GET', path), 400, 'invalidCursor');
    }
    const own = withQuery('/Users', { cursor: bytes.toString('base64url'), sortBy: 'userName' });
    expect((await tenant.send('GET', own)).status).toBe(200);
  });
});

describe('ids, numbers and lists in the wrong place', () => {
  it('numbers as ids are 404 in an address, 400 in a body', async () => {
    for (const id of ['42', '0', '-1', '1e3', '00000000-0000-0000-0000-000000000000', 'NaN']) {
      expectScimError(await tenant.send('GET', `/Users/${id}`), 404);
      expectScimError(await tenant.send('PUT', `/Groups/${id}`, { displayName: 'x' }), 404);
      expectScimError(await tenant.send('DELETE', `/Groups/${id}`), 404);
    }
    for (const value of [42, '42', null, true, {}, [user.id], [[user.id]], '']) {
      for (const members of [[{ value }], [value], { value: [value] }]) {
        if (value === null && Array.isArray(members) && members[0] === null) continue;
        const body = { displayName: randomUUID(), members };
        expectScimError(await tenant.send('POST', '/Groups', body), 400, 'invalidValue');
      }
    }
  });

  it.each<[string, unknown]>([
    ['userName', ['a']],
    ['userName', [['a']]],
    ['userName', {}],
    ['externalId', ['a']],
    ['externalId', true],
    ['name', [['a']]],
    ['name', { givenName: ['a'] }],
    ['emails', 42],
    ['emails', [['a@x.example']]],
    ['emails', [{ value: ['a@x.example'] }]],
    ['emails', Array.from({ length: 101 }, (_, n) => ({ value: `${n}@x.example` }))],
    ['title', 'a'.repeat(16_385)],
    ['userName', 'a'.repeat(513)],
    ['externalId', 'a'.repeat(513)],
    ['active', [true, false]],
    [ENTERPRISE, { manager: [{ value: 'a' }, { value: 'b' }] }],
  ])('%s cannot replace the correct type', async (name, value) => {
    const body = { userName: randomUUID(), [name]: value };
    expectScimError(await tenant.send('POST', '/Users', body), 400, 'invalidValue');
    expectScimError(await tenant.send('PUT', `/Users/${user.id}`, body), 400, 'invalidValue');
    const patch = patchOf({ op: 'replace', value: { [name]: value } });
    expectScimError(await tenant.send('PATCH', `/Users/${user.id}`, patch), 400, 'invalidValue');
  });

  it('a list instead of a body, an operation or a path is 400', async () => {
    for (const path of ['/Users', '/Groups', '/Bulk']) {
      for (const body of [
        [],
        [{ userName: 'x', displayName: 'x' }],
        'null',
        '42',
        '"x"',
        '',
        '{',
      ]) {
        expectScimError(await tenant.send('POST', path, body), 400, 'invalidSyntax');
      }
    }
    for (const operation of [[], null, 42, 'add', [{ op: 'add' }]]) {
      const body = { Operations: [operation] };
      expectScimError(await tenant.send('PATCH', `/Users/${user.id}`, body), 400, 'invalidSyntax');
    }
    for (const path of [['title'], 42, {}, true]) {
      const body = patchOf({ op: 'add', path, value: 'x' });
      expectScimError(await tenant.send('PATCH', `/Users/${user.id}`, body), 400, 'invalidPath');
    }
  });

  it.each([
    'startIndex=x',
    'startIndex=1.5',
    'startIndex=1e3',
    'startIndex=0x10',
    'startIndex=99999999999999999999',
    'count=x',
    'count=Infinity',
    'count=99999999999999999999',
    'count=1&count=2',
    'filter=title pr&filter=id pr',
    'attributes=id&excludedAttributes=title',
    'sortBy=userName&sortBy=title',
    'startIndex=1&startIndex=1',
  ])('the query %s is 400', async (query) => {
    expectRefused(await tenant.send('GET', `/Users?${query}`));
    expectRefused(await tenant.send('GET', `/Groups?${query}`));
    expectRefused(await tenant.send('GET', `?${query}`));
  });

  it('two cursors are 400', async () => {
    expectRefused(await tenant.send('GET', '/Users?cursor=&cursor='));
  });

  it.each([
    'startIndex=999999999999999',
    'startIndex=-999999999999999',
    'count=999999999999999',
    'count=-999999999999999',
    'startIndex=-1&count=-1',
    'startIndex=&count=&sortBy=',
    'startIndex=01&count=007',
  ])('the query %s is 200', async (query) => {
    for (const path of ['/Users', '/Groups', '']) {
      const answer = await tenant.send('GET', `${path}?${query}`);
      expect([path, answer.status, answer.text]).toEqual([path, 200, expect.any(String)]);
      expect(answer.json.itemsPerPage).toBe(answer.json.Resources.length);
    }
  });

  it('the same parameters in a search request are 400, too', async () => {
    for (const field of ['startIndex', 'count']) {
      for (const value of ['x', 1.5, 1e300, {}, [1], true]) {
        expectRefused(await search('/Users', { [field]: value }));
      }
    }
    for (const field of ['sortBy', 'sortOrder', 'cursor', 'filter']) {
      for (const value of [42, {}, ['userName'], true]) {
        expectRefused(await search('/Users', { sortBy: 'userName', [field]: value }));
      }
    }
    for (const field of ['attributes', 'excludedAttributes']) {
      for (const value of [42, {}, [42], [['id']], true]) {
        expectRefused(await search('/Users', { [field]: value }));
      }
    }
  });
});

describe('too large requests', () => {
  it('10,000 bulk operations are 413', async () => {
    const operations = Array.from({ length: 10_000 }, () => '{}').join(',');
    const answer = await tenant.send('POST', '/Bulk', `{"Operations":[${operations}]}`);
    expectScimError(answer, 413);
  });

  it('a body of 65 KB is 413, of 64 KiB read', async () => {
    const sized = (size: number) => {
      const frame = JSON.stringify({ title: '' });
      return JSON.stringify({ title: 'a'.repeat(size - frame.length) });
    };
    for (const [method, path] of [
      ['POST', '/Users'],
      ['PUT', `/Users/${user.id}`],
      ['PATCH', `/Groups/${group.id}`],
      ['POST', '/Bulk'],
      ['POST', '/.search'],
    ] as const) {
      expectScimError(await tenant.send(method, path, sized(65 * KIB)), 413);
      expect((await tenant.send(method, path, sized(64 * KIB))).status).not.toBe(413);
    }
  });

  it('more than 1,000 operations of a PATCH are 400', async () => {
    const operation = { op: 'add', path: 'title', value: 'x' };
    const body = patchOf(...Array.from({ length: 1001 }, () => operation));
    expectScimError(await tenant.send('PATCH', `/Users/${user.id}`, body), 400, 'tooMany');
  });

  it('a body nested 9,000 deep is 400', async () => {
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      const deep = `${open.repeat(9000)}1${close.repeat(9000)}`;
      for (const body of [
        `{"userName":"x","title":${deep}}`,
        `{"Operations":[{"data":${deep}}]}`,
      ]) {
        expectRefused(await tenant.send('POST', '/Users', body));
        expectRefused(await tenant.send('POST', '/Bulk', body));
        expectRefused(await tenant.send('PATCH', `/Users/${user.id}`, body));
      }
    }
  });

  it('thousands of attributes are ignored, or too many', async () => {
    const body = Object.fromEntries(Array.from({ length: 4000 }, (_, n) => [`a${n}`, n]));
    const answer = await tenant.send('POST', '/Users', { ...body, userName: randomUUID() });
    expect(answer.status).toBe(201);
    const attributes = Array.from({ length: 1000 }, (_, n) => `a${n}`).join();
    expect((await tenant.send('GET', withQuery('/Users', { attributes }))).status).toBe(200);
    const longer = Array.from({ length: 8000 }, (_, n) => `a${n}`);
    expectRefused(await search('/Users', { attributes: longer }));
  });
});

describe('requests that HTTP allows, and the service does not', () => {
  it.each([
    'text/plain',
    'application/xml',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
  ])('a body of %s is 415', async (type) => {
    for (const [method, path] of [
      ['POST', '/Users'],
      ['PUT', `/Users/${user.id}`],
      ['PATCH', `/Groups/${group.id}`],
      ['POST', '/Bulk'],
      ['POST', '/Users/.search'],
    ] as const) {
      const answer = await tenant.send(method, path, '{}', { 'content-type': type });
      expectScimError(answer, 415);
    }
  });

  it('a method that a path does not support is 405, with Allow', async () => {
    const allowed = async (method: string, path: string) => {
      const answer = await tenant.send(method, path, method === 'DELETE' ? undefined : {});
      expectScimError(answer, 405);
      return (answer.headers.get('allow') ?? '').split(', ').toSorted();
    };
    expect(await allowed('PUT', '/Users')).toEqual(['GET', 'HEAD', 'OPTIONS', 'POST']);
    expect(await allowed('DELETE', '/Groups')).toEqual(['GET', 'HEAD', 'OPTIONS', 'POST']);
    const one = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'PUT'];
    expect(await allowed('POST', `/Users/${user.id}`)).toEqual(one);
    expect(await allowed('POST', `/Groups/${group.id}`)).toEqual(one);
    expect(await allowed('PUT', '/Bulk')).toEqual(['OPTIONS', 'POST']);
    expect(await allowed('POST', '/Schemas')).toEqual(['GET', 'HEAD', 'OPTIONS']);
    expect(await allowed('POST', '/Schemas/x')).toEqual(['GET', 'HEAD', 'OPTIONS']);
    expectScimError(await tenant.send('GET', '/Bulk'), 405);
  });

  it('an unknown path is 404', async () => {
    for (const path of ['/x', '/Users/x/y', '/Userss', '/v2/Users', '/.well-known']) {
      expectScimError(await tenant.send('GET', path), 404);
      expectScimError(await tenant.send('POST', path, {}), 404);
    }
  });

  it('a malformed If-Match matches nothing', async () => {
    const body = patchOf({ op: 'replace', path: 'title', value: 'x' });
    for (const tag of ['x', '""', 'W/', 'W/"', ',', '"__proto__"', `W/"${'9'.repeat(4000)}"`]) {
      const answer = await tenant.send('PATCH', `/Users/${user.id}`, body, { 'if-match': tag });
      expectScimError(answer, 412);
    }
    expect((await shown(tenant, 'Users', user.id)).title).not.toBe('x');
  });

  it('a target that no client would send gets a SCIM error too', async () => {
    for (const path of [
      '/scim/v2/Users/\u0001',
      '/scim/v2/Users?filter=\u00ff',
      '/scim/v2///Users',
    ]) {
      const headers = [
        `Host: ${new URL(app.baseUrl).host}`,
        `Authorization: Bearer ${tenant.token}`,
        'X-Forwarded-For: 10.9.8.7',
      ];
      const answer = await rawExchange(
        app.baseUrl,
        requestBytes(app.baseUrl, `GET ${path}`, headers),
      );
      expect([path, [400, 404].includes(answer.status)]).toEqual([path, true]);
    }
  });
});

it('no such request was logged as a fault of the service', () => {
  expect(app.log.filter((line) => /"level":(50|60|"error"|"fatal")/i.test(line))).toEqual([]);
});
