import { Client } from 'pg';
import { describe, expect, it } from 'vitest';
import { databaseUrl, parseDatabaseUrl } from '#platform/database/url/database-url.js';

const LOGIN = 'postgres://svc:p%2Cw@';

describe('a URL of a database', () => {
  it.each<[string, string[]]>([
    ['postgres://db/svc', ['db:5432']],
    ['postgresql://svc@db:6432/svc', ['db:6432']],
    ['postgres://svc:p,w@db/svc', ['db:5432']],
    [`${LOGIN}a:5432,b:5433,c/svc?sslmode=verify-full`, ['a:5432', 'b:5433', 'c:5432']],
    [`${LOGIN}[::1]:5433,[2001:db8::2]/svc`, ['::1:5433', '2001:db8::2:5432']],
    [`${LOGIN}/svc?host=/run/a,/run/b&port=5432,5433`, ['/run/a:5432', '/run/b:5433']],
    [`${LOGIN}/svc?host=a,b&port=6432`, ['a:6432', 'b:6432']],
    [`${LOGIN}%2Frun%2Fa,b/svc`, ['/run/a:5432', 'b:5432']],
    ['postgres://svc@a,b', ['a:5432', 'b:5432']],
  ])('%s has its hosts, as the driver reads each', (url, expected) => {
    const { hosts = [] } = parseDatabaseUrl(url) ?? {};
    expect(hosts.map(({ host, port }) => `${host}:${port}`)).toEqual(expected);
    const read = hosts.map((host) => new Client({ connectionString: host.url }));
    expect(read.map(({ host, port }) => `${host}:${port}`)).toEqual(expected);
  });

  it('keeps the login, the database and the parameters of TLS for every host', () => {
    const url = `${LOGIN}a,b/svc?sslmode=verify-full&target_session_attrs=primary&application_name=x`;
    const parsed = parseDatabaseUrl(url);
    expect(parsed).toMatchObject({ target: 'primary', database: 'svc' });
    for (const host of parsed?.hosts ?? []) {
      const { user, password, database, ssl } = new Client({ connectionString: host.url });
      expect([user, password, database, ssl]).toEqual(['svc', 'p,w', 'svc', {}]);
      expect(host.url).toContain('application_name=x');
    }
  });

  it.each([
    'mysql://db/svc',
    'postgres://a,,b/svc',
    'postgres://a:0,b/svc',
    'postgres://a:65536,b/svc',
    'postgres://a:x,b/svc',
    'postgres://[::1,b/svc',
    'postgres://a b/svc',
    'postgres://%zz,b/svc',
    'postgres:///svc?host=a,b,c&port=1,2',
    'postgres://a,b/svc?target_session_attrs=standby',
    'postgres://a,b/svc?target_session_attrs=Read-Write',
  ])('%s is refused, with the page and without the value', (url) => {
    const [issue] = databaseUrl.safeParse(url).error?.issues ?? [];
    expect(issue?.message).toMatch(/^[^%[]+ \(docs\/operations\/databases\.md\)$/);
    expect(parseDatabaseUrl(url)).toBeUndefined();
  });
});
