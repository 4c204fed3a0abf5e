import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Provider, interactionPolicy } from 'oidc-provider';
// @ts-expect-error -- this file of the library has no types
import instanceOf from 'oidc-provider/lib/helpers/weak_cache.js';
import { describe, expect, it } from 'vitest';
import * as patches from '../../../../src/features/oidc/engine/library-patches.js';

/**
 * The library functions that `library-patches.ts` calls or replaces, each with the hash of its own
 * text. A change inside a function that one of them calls is not noticed. If an update changes one,
 * read it and run the tests that its entry in `library-patches.ts` names. Then record the new hash
 * here.
 */
const READ: Readonly<Record<string, string>> = {
  'grants.buildTokenResponse': 'bebe45369bbde122',
  'grants.checkDpopReplay': 'c2c4f632ae40b5a6',
  'grants.checkDpopRequired': '20151069543e4b1a',
  'grants.checkMtlsCert': 'c2bb2cb821898769',
  'grants.resolveRequestedResources': '63e82e759bfd8d35',
  'grants.validateClientScope': '5815638c11b44ac5',
  'grants.validateDpop': 'ad8bd399c17174cb',
  'weak_cache.get': 'b78dc30f0576a183',
  'challenge.ServerChallenge': 'f5b46f5ac130ecc2',
  'ReplayDetection.unique': '26f0872a55e335f1',
  'Client.compareClientSecret': '7a404f9c25995b01',
  'OIDCContext.clientJwtAuthExpectedAudience': '6ac77806898d6f94',
  'Session.sidFor': 'ff019bd740359f8b',
  'consent.native_client_prompt': '0597dff889f1d02d',
};

/** The folder of the library's source files. */
const LIBRARY = dirname(fileURLToPath(import.meta.resolve('oidc-provider')));

/**
 * Parts of the library that are not functions: whole files, or all lines of some files that match
 * an expression.
 *
 * - `removeAccount` needs that a session is stored if it was touched.
 * - `correctErrorCode` needs the English messages.
 * - `currentContext` needs the context of a request.
 * - `logNotices` needs the code that prints notices.
 * - `keepGetterOutOfOldGeneration` needs the getter on the context of a request.
 */
const TEXTS = {
  'shared/session.js': { of: 'shared/session.js', line: /^/, hash: 'f74ef8069e3046d0' },
  'helpers/attention.js': { of: 'helpers/attention.js', line: /^/, hash: '8d03799a95937832' },
  'session.touched': { of: '**/*.js', line: /\btouched\b/, hash: '25e4dce9e49a5d4d' },
  'Provider.ctx': {
    of: 'provider.js',
    line: /\bals\b|AsyncLocalStorage|static get ctx/,
    hash: '1eb85b2f726953d3',
  },
  'ctx.oidc': {
    of: 'helpers/initialize_app.js',
    line: /oidcCtx|defineProperty/,
    hash: '94bfa2410662a294',
  },
  messages: {
    of: '**/*.js',
    line: /is not allowed for this client['`]|no client authentication mechanism provided/,
    hash: '97237a71eb065c7c',
  },
} as const;

/** Returns the matching lines of some files of the library, each after its path. */
function linesOf(pattern: string, line: RegExp): string[] {
  const paths = globSync(pattern, { cwd: LIBRARY }).toSorted();
  return paths.flatMap((path) =>
    readFileSync(join(LIBRARY, path), 'utf8')
      .split('\n')
      .filter((text) => line.test(text))
      .map((text) => `${path}: ${text.trim()}`),
  );
}

const provider = new Provider('https://issuer.example', {
  features: { dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 1) } },
});

/** Returns the functions of the installed library. */
function installed(): Record<string, unknown> {
  const { DPoPNonces } = instanceOf(provider) as { DPoPNonces: object };
  const nonces = Object.getPrototypeOf(DPoPNonces) as { constructor: unknown };
  const { ReplayDetection, Client, OIDCContext, Session } = provider;
  const consent = interactionPolicy.base().get('consent');
  return {
    'grants.buildTokenResponse': patches.buildTokenResponse,
    'grants.checkDpopReplay': patches.checkDpopReplay,
    'grants.checkDpopRequired': patches.checkDpopRequired,
    'grants.checkMtlsCert': patches.checkMtlsCert,
    'grants.resolveRequestedResources': patches.resolveRequestedResources,
    'grants.validateClientScope': patches.validateClientScope,
    'grants.validateDpop': patches.validateDpop,
    'weak_cache.get': instanceOf,
    'challenge.ServerChallenge': nonces.constructor,
    'ReplayDetection.unique': Reflect.get(ReplayDetection, 'unique'),
    'Client.compareClientSecret': Reflect.get(Client.prototype, 'compareClientSecret'),
    'OIDCContext.clientJwtAuthExpectedAudience': Reflect.get(
      OIDCContext.prototype,
      'clientJwtAuthExpectedAudience',
    ),
    'Session.sidFor': Reflect.get(Session.prototype, 'sidFor'),
    'consent.native_client_prompt': consent?.checks.get('native_client_prompt')?.check,
  };
}

const hash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16);

function hashesOf(functions: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(functions).map(([name, one]) => [name, hash(String(one))]),
  );
}

describe('the inside of oidc-provider that library-patches.ts uses', () => {
  it('is what was read when it was last updated', () => {
    const functions = installed();
    const missing = Object.keys(functions).filter((name) => typeof functions[name] !== 'function');
    expect(missing).toEqual([]);
    expect(hashesOf(functions)).toEqual(READ);
  });

  it('has the session, the context, the messages and the notices that were read', () => {
    const found = Object.entries(TEXTS).map(([name, { of, line }]) => ({
      name,
      lines: linesOf(of, line),
    }));
    expect(found.filter(({ lines }) => lines.length === 0)).toEqual([]);
    expect(
      Object.fromEntries(found.map(({ name, lines }) => [name, hash(lines.join('\n'))])),
    ).toEqual(Object.fromEntries(Object.entries(TEXTS).map(([name, text]) => [name, text.hash])));
  });

  it('is seen if a function changes', () => {
    const changed = { 'weak_cache.get': () => undefined };
    expect(hashesOf(changed)['weak_cache.get']).not.toBe(READ['weak_cache.get']);
  });
});
