import { expect, it } from 'vitest';
import type { ListedHosts } from '../src/reach/own-reach.js';
import { hostOfFirstRequest } from '../src/ssh/first-request.js';

const group = (name: string, logins: number, ...hosts: string[]): ListedHosts => ({
  name,
  hosts,
  logins: Array.from({ length: logins }, (_, n) => `u${n}`),
});

/**
 * Calls {@link hostOfFirstRequest} with a server that refuses the given hosts. Returns the host or
 * the error, and the hosts about which the server was asked.
 */
async function hostFor(
  groups: readonly ListedHosts[],
  refusals: Readonly<Record<string, string>>,
): Promise<{ readonly host: unknown; readonly asked: readonly string[] }> {
  const asked: string[] = [];
  const host = await hostOfFirstRequest(groups, async (name = 'all hosts') => {
    asked.push(name);
    return refusals[name];
  }).catch((error: unknown) => error);
  return { host, asked };
}

const MANY = { 'all hosts': 'too_many_principals' };

it('names no host, and asks nothing, if the names of all groups fit', async () => {
  const end = await hostFor([group('a', 250, '*.a'), group('b', 4, 'b')], MANY);
  expect(end).toEqual({ host: undefined, asked: [] });
});

it('names no host if the server leaves enough names out', async () => {
  const groups = [group('a', 250, '*.a'), group('prod', 10, 'prod')];
  expect(await hostFor(groups, {})).toEqual({ host: undefined, asked: ['all hosts'] });
});

it('names a host of the smallest group for which the server issues a certificate', async () => {
  const groups = [group('a', 200, '*.a'), group('b', 201, '?.b'), group('prod', 10, 'prod')];
  const end = await hostFor(groups, { ...MANY, prod: 'insufficient_user_authentication' });
  expect(end).toEqual({ host: 'x.a', asked: ['all hosts', 'prod', 'x.a'] });
});

it('fails if the server issues a certificate for no group', async () => {
  const groups = [group('a', 200, 'a'), group('b', 201, 'b')];
  const refusals = { ...MANY, a: 'too_many_principals', b: 'browser_required' };
  const { host, asked } = await hostFor(groups, refusals);
  expect(host).toMatchObject({ whatToDo: expect.stringContaining('--principal NAME') });
  expect(asked).toEqual(['all hosts', 'a', 'b']);
});

it('asks for ten groups at most', async () => {
  const groups = Array.from({ length: 30 }, (_, n) => group(`g${n}`, 10, `h${n}`));
  const refusals = Object.fromEntries(groups.map(({ hosts }) => [hosts[0], 'browser_required']));
  const { asked } = await hostFor(groups, { ...MANY, ...refusals });
  expect(asked).toHaveLength(11);
});

it.each([
  [['*', '!x*'], 'svc'],
  [['db?', '!dbx'], 'dbs'],
  [['*.a', '!*.a', 'b'], 'b'],
  [['!*', '*'], undefined],
  [['ü*', '_*'], undefined],
])('for %j it asks for %s, which no pattern of the group excludes', async (hosts, name) => {
  const { asked } = await hostFor([group('a', 300, ...hosts)], MANY);
  expect(asked).toEqual(['all hosts', ...(name === undefined ? [] : [name])]);
});
