import { describe, expect, it } from 'vitest';
import { requestPath } from '../../../src/platform/http/contract/request-path.js';
import { RouteTable } from '../../../src/platform/http/routing/route-table.js';

const table = new RouteTable([
  ['/', 'root'],
  ['/v1/keys*', 'keys'],
  ['/v1/keys/register/*', 'register'],
  ['/v1/credentials/ssh', 'ssh'],
  ['/static/*', 'static'],
]);

describe('a route table', () => {
  it.each([
    ['/', 'root'],
    ['/v1/keys', 'keys'],
    ['/v1/keys/', 'keys'],
    ['/V1/KEYS/abc', 'keys'],
    ['/v1/keys/:id', 'keys'],
    ['/v1/keys/a/b/c/d/e/f', 'keys'],
    ['/v1/keys/register/start', 'register'],
    ['/v1/keys/register', 'register'],
    ['/v1/credentials/ssh/', 'ssh'],
    ['/static/a.css', 'static'],
  ])('matches %s as the router does: %s', (path, value) => {
    expect(table.of(path)).toBe(value);
  });

  it.each(['/v1/keysmith', '/v1', '/v1/credentials/ssh/ca', '/nothing', '*', '/v1//keys'])(
    'does not match %s',
    (path) => {
      expect(table.of(path)).toBeUndefined();
    },
  );

  it('refuses a duplicate route', () => {
    const rows = [
      ['/a/b', 1],
      ['/A/b/', 2],
    ] as const;
    expect(() => new RouteTable(rows)).toThrow('/A/b/');
  });
});

describe('the path of a request', () => {
  it.each([
    ['/v1/keys?code=secret', '/v1/keys'],
    ['/?a?b', '/'],
    ['http://localhost:3000/v1/keys?x', '/v1/keys'],
    ['//evil.example/x', '//evil.example/x'],
    ['http://localhost:3000', '/'],
    ['HTTP://localhost:3000?x=/y', '/'],
    ['http://localhost:3000/v1/../health', '/v1/../health'],
    ['http://localhost:3000/v1/%2e%2e/health', '/v1/%2e%2e/health'],
    ['ftp://localhost/v1/keys', '*'],
    ['*', '*'],
    ['http://[/', '*'],
    ['', '*'],
    ['/scim/v2//Users?a=/scim/v2//', '/scim/v2/Users'],
    ['/SCIM/v2//', '/SCIM/v2/'],
    ['http://localhost:3000/scim/v2//Users', '/scim/v2/Users'],
    ['/scim/v2///Users', '/scim/v2///Users'],
    ['//scim/v2//Users', '//scim/v2//Users'],
    ['/scim//v2/Users', '/scim//v2/Users'],
    ['/v1//keys', '/v1//keys'],
  ])('of %s is %s', (url, path) => {
    expect(requestPath({ url }, ['/scim/v2/'])).toBe(path);
  });
});
