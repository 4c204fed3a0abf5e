import { describe, expect, it } from 'vitest';
import { againstFolderOrder, circlesOf } from './folder-order.js';
import { importsOf, isOwn, productFiles, reachableFrom, type SourceFile } from './import-graph.js';

const files = productFiles();
const layerOf = (path: string) => /^src\/(features|domain|platform|demo)\//.exec(path)?.[1];
const featureOf = (path: string) => /^src\/features\/([^/]+)\//.exec(path)?.[1];

/** Returns the imports that a rule forbids, as `file -> target`. */
function violations(
  of: readonly SourceFile[],
  isForbidden: (from: string, target: string) => boolean,
): string[] {
  return of.flatMap(({ path, imports }) =>
    imports.filter((target) => isForbidden(path, target)).map((target) => `${path} -> ${target}`),
  );
}

const MAY_IMPORT: Record<string, readonly string[]> = {
  features: ['features', 'domain', 'platform'],
  domain: ['domain', 'platform'],
  platform: ['platform'],
};

function crossesLayers(from: string, target: string): boolean {
  const allowed = MAY_IMPORT[layerOf(from) ?? ''];
  return (
    allowed !== undefined && target.startsWith('src/') && !allowed.includes(layerOf(target) ?? '')
  );
}

function crossesFeatures(from: string, target: string): boolean {
  const feature = featureOf(from);
  return (
    feature !== undefined && target.startsWith('src/features/') && featureOf(target) !== feature
  );
}

/**
 * Returns a graph of the imports between our files. `nameOf` decides whether its nodes are files or
 * folders. Each node has the set of nodes that it imports.
 */
function arrowsOf(of: readonly SourceFile[], nameOf: (path: string) => string) {
  const arrows = new Map<string, Set<string>>();
  for (const { path, imports } of of) {
    const own = arrows.get(nameOf(path)) ?? new Set();
    const targets = imports.filter(isOwn).map(nameOf);
    for (const target of targets) if (target !== nameOf(path)) own.add(target);
    arrows.set(nameOf(path), own);
  }
  return arrows;
}

/** Matches an HTTP path of the product in a string or in a regular expression. */
const PRODUCT_PATH =
  /(?:['"`](?:[A-Z]+ )?|\/\^)\\?\/(?:\.well-known|admin|api|certification|device|enroll|health|interaction|keys|login|logout|metrics|oauth|saml|scim|sessions|static|v1)\b/g;

/** Returns the HTTP paths of the product that a file has in its code, without its comments. */
function routesIn({ path, text }: SourceFile): string[] {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\/|(?<!['"`:])\/\/.*$/gm, '');
  return [...code.matchAll(PRODUCT_PATH)].map(([found]) => `${path}: ${found}`);
}

const planted = (path: string, target: string): SourceFile => ({
  path,
  text: '',
  imports: [target],
});

describe('layers', () => {
  it('sees every layer', () => {
    for (const layer of ['features', 'domain', 'platform', 'demo']) {
      expect(files.filter(({ path }) => layerOf(path) === layer).length, layer).toBeGreaterThan(5);
    }
  });

  it('reads every form of import', () => {
    const text = `import a from './a.js';\nimport type { B } from '#domain/b.js';\nexport * from "./c.js";
      import './d.js';\nconst e = await import('./e.js');`;
    expect(importsOf(text)).toEqual(['./a.js', '#domain/b.js', './c.js', './d.js', './e.js']);
  });

  it('imports go from features to domain to platform, never upwards', () => {
    expect(violations(files, crossesLayers)).toEqual([]);
    const upwards = planted('src/platform/http/x.ts', 'src/domain/users/y.ts');
    expect(violations([upwards], crossesLayers)).toHaveLength(1);
  });

  it('a feature never imports another feature', () => {
    expect(violations(files, crossesFeatures)).toEqual([]);
    const sideways = planted('src/features/pages/x.ts', 'src/features/webauthn/y.ts');
    expect(violations([sideways], crossesFeatures)).toHaveLength(1);
  });

  it('folders of one layer import only folders below them in the list', () => {
    const against = (of: readonly SourceFile[]) =>
      of.flatMap(({ path, imports }) =>
        imports.flatMap((target) => againstFolderOrder(path, target) ?? []),
      );
    expect(against(files)).toEqual([]);
    expect(
      against([planted('src/platform/text/x.ts', 'src/platform/http/edge/y.ts')]),
    ).toHaveLength(1);
    expect(
      against([planted('src/platform/unheard-of/x.ts', 'src/platform/text/y.ts')]),
    ).toHaveLength(1);
    expect(
      against([planted('src/features/oidc/request/x.ts', 'src/features/oidc/token/y.ts')]),
    ).toHaveLength(1);
    expect(
      against([planted('src/features/scim/query/x.ts', 'src/features/scim/http/y.ts')]),
    ).toHaveLength(1);
  });

  it('neither files nor folders import each other in a circle', () => {
    // A Nest module of the domain counts as a folder of its own. It imports the folders below its
    // folder, while their files may import the other files beside the module.
    const folderOf = (path: string) =>
      /^src\/domain\/.*\.module\.ts$/.test(path) ? path : path.slice(0, path.lastIndexOf('/'));
    const file = (path: string) => path;
    expect(circlesOf(arrowsOf(files, file))).toEqual([]);
    expect(circlesOf(arrowsOf(files, folderOf))).toEqual([]);
    const circle = [planted('src/a/x.ts', 'src/b/y.ts'), planted('src/b/z.ts', 'src/a/w.ts')];
    expect(circlesOf(arrowsOf(circle, folderOf))).toHaveLength(1);
    expect(circlesOf(arrowsOf(circle, file))).toEqual([]);
  });

  it('the domain imports no HTTP framework', () => {
    const http = (from: string, target: string) =>
      layerOf(from) === 'domain' && ['express', '@nestjs/platform-express'].includes(target);
    expect(violations(files, http)).toEqual([]);
    const thrown = files.filter(
      ({ path, text }) => layerOf(path) === 'domain' && /\bHttpException\b/.test(text),
    );
    expect(thrown.map(({ path }) => path)).toEqual([]);
  });

  it('no file imports the demo or a stand-in, and main.ts and migrate.ts reach neither', () => {
    const OF_DEMO = /^(?:src\/demo|packages\/(?:demo|stand-ins))\//;
    const demo = (from: string, target: string) => !OF_DEMO.test(from) && OF_DEMO.test(target);
    expect(violations(files, demo)).toEqual([]);
    for (const path of ['src/features/pages/x.ts', 'packages/openssh/src/x.ts']) {
      expect(violations([planted(path, 'packages/demo/src/y.ts')], demo), path).toHaveLength(1);
    }
    for (const entry of ['src/main.ts', 'src/migrate.ts', 'src/admin.ts']) {
      const reached = [...reachableFrom(entry)];
      expect(reached).toContain('src/platform/database/migrations.ts');
      expect(reached.filter((path) => OF_DEMO.test(path))).toEqual([]);
    }
    const reached = reachableFrom('src/demo/main.ts');
    expect(reached).toContain('packages/stand-ins/src/software-key/software-key.ts');
    expect(reached).toContain('packages/demo/src/scenario/offboarding.ts');
  });

  it('the command imports nothing of the server, and no package but arguments and the formats of OpenSSH', () => {
    const packages = (from: string, target: string) =>
      from.startsWith('packages/svc/') &&
      !/^(?:node:|packages\/(?:svc|arguments|openssh)\/)/.test(target);
    expect(violations(files, packages)).toEqual([]);
    expect(violations([planted('packages/svc/src/x.ts', 'undici')], packages)).toHaveLength(1);
    const server = planted('packages/svc/src/x.ts', 'src/platform/text/y.ts');
    expect(violations([server], packages)).toHaveLength(1);
  });

  it('only platform/config, and one file of the command, read the environment', () => {
    const readers = files.filter(({ text }) => /\bprocess\.env\b/.test(text));
    expect(readers.map(({ path }) => path).toSorted()).toEqual([
      'packages/svc/src/program/environment.ts',
      'src/platform/config/environment.ts',
    ]);
  });

  it('only repositories and platform/database write SQL', () => {
    const writers = files.filter(({ text }) =>
      /\b(?:sql(?:<[^`]*>)?\(\w+(?:\.\w+)*\)|fragment)`/.test(text),
    );
    expect(writers.length).toBeGreaterThan(5);
    const elsewhere = writers.filter(
      ({ path }) => !path.endsWith('.repository.ts') && !path.startsWith('src/platform/database/'),
    );
    expect(elsewhere.map(({ path }) => path)).toEqual([]);
  });

  it('src/platform names no route of the product', () => {
    const platform = files.filter(({ path }) => layerOf(path) === 'platform');
    expect(platform.flatMap(routesIn)).toEqual([]);
    const text =
      "const A = ['/v1/keys*']; const B = [`POST /oauth/token`]; const C = /^\\/scim\\/v2/;";
    const found = routesIn({ path: 'src/platform/http/x.ts', text, imports: [] });
    expect(found).toHaveLength(3);
  });

  it('no folder has a name without meaning', () => {
    const empty = /\/(?:utils|helpers|common|shared|misc|lib|core|manager|interfaces)\//;
    expect(files.map(({ path }) => path).filter((path) => empty.test(path))).toEqual([]);
  });
});

describe('the production composition root', () => {
  it('trusts only the pinned roots, and no variable adds to them', () => {
    const root = files.find(({ path }) => path === 'src/production.ts');
    expect(reachableFrom('src/main.ts')).toContain('src/production.ts');
    expect(root?.text).toContain('trustAnchors: PINNED_ROOTS,');
    expect(root?.text).toContain("composition: 'production'");
    const anchors = files.filter(({ text }) => text.includes('trustAnchorFromPem('));
    expect(anchors.map(({ path }) => layerOf(path))).not.toContain('features');
    for (const path of reachableFrom('src/main.ts')) {
      if (path === 'src/domain/keys/authenticators/attestation/trust-anchors.ts') continue;
      const text = files.find((file) => file.path === path)?.text ?? '';
      const uses = text.replace('export function trustAnchorFromPem(', '');
      expect(uses, path).not.toContain('trustAnchorFromPem(');
    }
  });
});
