import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import zlib from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { OpenApiDocument } from '#platform/http/openapi/document-types.js';
import { RoutePolicies } from '../../src/platform/http/routing/route-policies.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { documentedKinds, undocumented, unmet, type Met } from '../support/traffic/comparison.js';
import { requires, SCHEMATHESIS } from '../support/programs.js';

let app: TestApp;

beforeAll(async () => {
  app = await startTestApp();
});

afterAll(() => app.close());

describe('GET /openapi.json', () => {
  it('serves the document to every origin, with an entity tag and without a limit', async () => {
    const origin = { origin: 'https://elsewhere.example' };
    const { status, headers, json } = await app.client().get('/openapi.json', { headers: origin });
    expect(status).toBe(200);
    expect(headers.get('access-control-allow-origin')).toBe('*');
    expect(json.openapi).toBe('3.1.1');
    // A URL of this test's machine would mean nothing to a reader.
    expect(json.servers).toEqual([{ url: '/' }]);
    const condition = { 'if-none-match': headers.get('etag') ?? '' };
    const again = await app.client().get('/openapi.json', { headers: condition });
    expect(again).toMatchObject({ status: 304, text: '' });
  });

  it('says URL in place of address for each field with a URL', async () => {
    const { json } = await app.client().get('/openapi.json');
    const called: string[] = [];
    const visit = (name: string, value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      const { format, description } = value as { format?: unknown; description?: unknown };
      const isUrl = format === 'uri' || /(?:^|_)(?:uri|url)s?$/.test(name);
      const text = `${name}: ${String(description)}`;
      if (isUrl && /\baddress/i.test(text)) called.push(text);
      for (const [key, inner] of Object.entries(value)) visit(key, inner);
    };
    visit('', json);
    expect(called).toEqual([]);
  });

  it.each(['/openapi.json', '/static/svc.mjs'])(
    'compresses %s once, and answers 304 to its entity tag of either coding, without a limit',
    async (path) => {
      const compress = vi.spyOn(zlib, 'gzipSync');
      syncBuiltinESMExports();
      const get = (headers: Record<string, string>) =>
        fetch(app.baseUrl + path, { headers: { 'x-forwarded-for': newAddress(), ...headers } });
      const plain = await get({ 'accept-encoding': 'identity' });
      const content = Buffer.from(await plain.arrayBuffer());
      const tags = [plain.headers.get('etag') ?? ''];
      for (let n = 0; n < 3; n += 1) {
        const gzip = await get({ 'accept-encoding': 'gzip' });
        expect([gzip.status, gzip.headers.get('content-encoding')]).toEqual([200, 'gzip']);
        expect(Number(gzip.headers.get('content-length'))).toBeLessThan(content.length / 3);
        expect(Buffer.from(await gzip.arrayBuffer()).equals(content)).toBe(true);
        tags.push(gzip.headers.get('etag') ?? '');
      }
      expect(compress.mock.calls.length).toBeLessThanOrEqual(1);
      const [tag = '', gzipped = '', ...same] = tags;
      expect(tag).toBe(`"${hash('sha256', content)}"`);
      expect([gzipped, ...same]).toEqual(Array(3).fill(tag.replace(/"$/, '-gzip"')));
      for (const coding of ['identity', 'gzip']) {
        for (const known of [tag, gzipped]) {
          const again = await get({ 'accept-encoding': coding, 'if-none-match': known });
          expect([again.status, again.headers.get('etag')]).toEqual([304, known]);
          expect(again.headers.get('vary')).toMatch(/accept-encoding/i);
        }
        const changed = await get({ 'accept-encoding': coding, 'if-none-match': '"old"' });
        expect([changed.status, (await changed.arrayBuffer()).byteLength]).toEqual([
          200,
          content.length,
        ]);
      }
      compress.mockRestore();
      syncBuiltinESMExports();
    },
  );

  it('has every route of /v1, /api/v1 and /scim/v2, and every OAuth endpoint for programs', async () => {
    const { json } = await app.client().get('/openapi.json');
    const { routes } = app.nest.get(RoutePolicies);
    const expected = routes
      .filter(
        ({ template, policy }) =>
          // /scim/v2/Me is not documented, because it answers nothing but 501 (RFC 7644 §3.11).
          template !== '/scim/v2/Me' &&
          (/^\/(?:v1|api\/v1|scim\/v2)(?:\/|$)/.test(template) ||
            (/^\/(?:oauth|\.well-known)\//.test(template) &&
              policy.audience === 'api' &&
              policy.errors !== 'html')),
      )
      .map(({ method, template }) => `${method} ${template.replaceAll(/:(\w+)/g, '{$1}')}`);
    const described = documentedKinds(json).map((kind) => kind.split(' ', 2).join(' '));
    expect(expected.length).toBeGreaterThan(80);
    expect(expected.filter((route) => !described.includes(route))).toEqual([]);
  });

  it('has an example of every parameter, and of every list as a file', async () => {
    const document: OpenApiDocument = (await app.client().get('/openapi.json')).json;
    const operations = Object.values(document.paths).flatMap((one) => Object.values(one));
    const hasExample = (one: object) => 'example' in one || 'examples' in one;
    const bare = operations.flatMap(({ operationId, parameters = [], responses }) => [
      ...parameters.filter((one) => !hasExample(one)).map(({ name }) => `${operationId} ${name}`),
      ...Object.values(responses)
        .flatMap((one) => Object.entries(('content' in one ? one.content : undefined) ?? {}))
        .filter(([type, media]) => /csv|ndjson/.test(type) && !hasExample(media))
        .map(([type]) => `${operationId} ${type}`),
    ]);
    expect(operations.length).toBeGreaterThan(150);
    // These two have no example: a DPoP proof is valid for one request only, and this list refuses
    // every cursor.
    expect(bare).toEqual(['issueToken dpop', 'listScimResources cursor']);
  });

  it('names each operation once, and each code and tag that it refers to exists', async () => {
    const { json } = await app.client().get('/openapi.json');
    const operations = Object.values<object>(json.paths).flatMap((one) => Object.values(one));
    const ids = operations.map(({ operationId }) => operationId as string);
    expect(new Set(ids).size).toBe(ids.length);
    const tags = (json.tags as { name: string }[]).map(({ name }) => name);
    for (const { tags: used } of operations) expect(tags).toEqual(expect.arrayContaining(used));
    const text = JSON.stringify(json);
    for (const [, kind = '', name = ''] of text.matchAll(/#\/components\/(\w+)\/([^"]+)"/g)) {
      expect(json.components[kind], name).toHaveProperty([name]);
    }
  });
});

requires('schemathesis').describe('the meta-schema of OpenAPI 3.1', () => {
  it('accepts the document', async () => {
    const { text } = await app.client().get('/openapi.json');
    const program = `
import json, sys
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR as validator
document = json.load(sys.stdin)
print([f"{list(e.instance_path)}: {e.message[:200]}" for e in validator.iter_errors(document)])
del document["info"]
print(len(list(validator.iter_errors(document))) > 0)
`;
    const python = join(dirname(SCHEMATHESIS), 'python');
    const { stdout } = spawnSync(python, ['-c', program], { input: text, encoding: 'utf8' });
    expect(stdout).toBe('[]\nTrue\n');
  });
});

describe('the comparison of the traffic of a run with the document', () => {
  const response = { content: { 'application/problem+json': {} } };
  const codes = { '404': ['not_found'] };
  const get = { responses: { '200': {}, '404': response }, 'x-error-codes': codes };
  const document = {
    paths: { '/v1/keys/{id}': { get } },
    components: { responses: {} },
  };
  const met = (change: Partial<Met>): Met => ({
    method: 'GET',
    head: false,
    template: '/v1/keys/:id',
    path: null,
    status: 404,
    type: 'application/problem+json',
    code: 'not_found',
    ...change,
  });

  it('finds a status, a media type and a code that the document lacks', () => {
    expect(undocumented([met({})], document)).toEqual([]);
    expect(undocumented([met({ status: 418 })], document)).toHaveLength(1);
    expect(undocumented([met({ type: 'text/html' })], document)).toHaveLength(1);
    expect(undocumented([met({ code: 'last_key' })], document)).toHaveLength(1);
    const early = met({ template: null, path: '/v1/keys/1', status: 421 });
    expect(undocumented([early], document)).toHaveLength(1);
    expect(undocumented([met({ template: '/login', status: 418 })], document)).toEqual([]);
  });

  it('finds what the document has and no test met', () => {
    expect(unmet([met({})], document)).toEqual(['GET /v1/keys/{id} 200']);
    expect(unmet([met({}), met({ status: 200, type: '', code: null })], document)).toEqual([]);
  });
});
