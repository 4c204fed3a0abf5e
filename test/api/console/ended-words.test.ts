import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';

/** The members of an OpenAPI schema that this file reads. */
interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
}

describe('the words for what an act ended', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it('are on each page that sends a form, for every kind that the API can report', async () => {
    const { client: admin } = await app.enrolled('ada@words.example');
    const { json: document } = await admin.get('/openapi.json');
    const kinds = endedKinds(document, document);
    expect(kinds).toContain('sessions');
    expect(kinds).toContain('enrollment_passes');

    const { text } = await admin.get('/admin/scim-tokens');
    const attribute = /data-ended-words="([^"]+)"/.exec(text)?.[1] ?? '';
    const words = JSON.parse(attribute.replaceAll('&quot;', '"')) as object;
    expect(kinds.filter((kind) => !Object.hasOwn(words, kind))).toEqual([]);
  });
});

/**
 * Collects the names of the members of every object that is called `ended`, anywhere in the
 * document.
 */
function endedKinds(node: unknown, document: unknown): string[] {
  if (typeof node !== 'object' || node === null) return [];
  const below = Object.values(node).flatMap((child) => endedKinds(child, document));
  const { ended } = (node as Schema).properties ?? {};
  if (!ended) return below;
  const { properties = {} } = ended.$ref === undefined ? ended : at(document, ended.$ref);
  return [...new Set([...below, ...Object.keys(properties)])];
}

/** Returns the part of the document to which a reference points. */
function at(document: unknown, reference: string): Schema {
  const names = reference.slice('#/'.length).split('/');
  return names.reduce<unknown>(
    (node, name) => (node as Record<string, unknown>)[name],
    document,
  ) as Schema;
}
