import { describe, expect, it } from 'vitest';
import { filesBelow } from './import-graph.js';
import { oldObjectsOf } from './old-garbage.js';

/** The permitted places, each with the reason why it makes no garbage for each request. */
const REASONS: Readonly<Record<string, string>> = {
  'src/workers/worker-pool.ts: this.#whenServing': 'once, when the workers start',
  'src/features/oidc/engine/library-patches.ts: own.checkChallenge': 'once, at the start',
  'src/features/oidc/engine/library-patches.ts: Reflect.defineProperty(context)':
    'passes a property of the OAuth library on, and no getter of a request',
  'src/features/oidc/engine/library-patches.ts: Object.defineProperty(provider.context)':
    'once, at the start',
  'src/features/oidc/engine/library-patches.ts: provider.ReplayDetection.unique':
    'once, at the start',
  'src/features/oidc/engine/library-patches.ts: session.sidFor': 'once, at the start',
  'src/features/oidc/engine/library-patches.ts: context.clientJwtAuthExpectedAudience':
    'once, at the start',
  'src/features/oidc/engine/library-patches.ts: console[method]': 'once, at the start',
  'src/platform/http/edge/late-writes.ts: Object.defineProperty(response)':
    'only for a request that took too long',
};

const FOLDERS = [
  'src',
  'packages/openssh/src',
  'packages/scim-language/src',
  'packages/webauthn-policy/src',
];

describe('our code makes no object of a request in the old generation of V8', () => {
  it('unless a reason is listed', () => {
    const found = FOLDERS.flatMap((folder) => filesBelow(folder, /(?<!\.d)\.ts$/))
      .flatMap(oldObjectsOf)
      .map(({ path, what }) => `${path}: ${what}`);
    expect(found.filter((place) => !(place in REASONS))).toEqual([]);
    expect(Object.keys(REASONS).filter((place) => !found.includes(place))).toEqual([]);
  });

  it.each([
    ['const f = (o) => { o.f = () => o; };', ['o.f']],
    ['const f = (o) => { o["f"] = function () {}; };', ['o["f"]']],
    ['const f = (o) => { o.f ??= (async () => o) as Handler; };', ['o.f']],
    ['class A { f = () => 1; constructor() { this.g = () => 2; } }', ['this.g']],
    ['const f = (o) => { const g = () => o; o.f = g; };', []],
    ['const f = (o) => ({ f: () => o });', []],
    ['module.f = () => 1;', []],
    [
      'const f = (o) => Object.defineProperty(o, "x", { get: () => 1 });',
      ['Object.defineProperty(o)'],
    ],
    [
      'const f = (o) => Object.defineProperty(o, "x", { get() { return 1; } });',
      ['Object.defineProperty(o)'],
    ],
    ['const f = (o, d) => Object.defineProperty(o, "x", d);', ['Object.defineProperty(o)']],
    ['const f = (o) => Object.defineProperty(o, "x", { value: 1 });', []],
    ['const f = () => AsyncLocalStorage.snapshot();', ['AsyncLocalStorage.snapshot']],
  ])('finds the places of %j', (text, places) => {
    const found = oldObjectsOf({ path: 'x.ts', text, imports: [] });
    expect(found.map(({ what }) => what)).toEqual(places);
  });
});
