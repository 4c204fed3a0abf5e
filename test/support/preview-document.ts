import 'reflect-metadata';
import { API } from '../../src/features/openapi/api-groups.js';
import { apiDocument } from '../../src/platform/http/openapi/api-document.js';
import type { OpenApiDocument } from '../../src/platform/http/openapi/document-types.js';
import { previewRoutes } from '../../src/reference/reference-pages.js';

/**
 * Returns the OpenAPI document of the service without starting it. `baseUrl` is the URL of the
 * service in the document.
 */
export async function previewDocument(
  baseUrl = 'https://login.acme.test',
): Promise<OpenApiDocument> {
  return apiDocument(await previewRoutes(), API, await API.examples(), baseUrl);
}

type Parts = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

const REFERENCE = /"#\/components\/(\w+)\/([^"]+)"/g;

/**
 * Returns the part of a document with the operations of one tag and the components that they refer
 * to. Programs read it in a fraction of the time.
 */
export function partOf(document: OpenApiDocument, tag: string): OpenApiDocument {
  const { components } = document;
  const chosen = Object.entries(document.paths).filter(([, methods]) =>
    Object.values(methods).every(({ tags }) => tags.includes(tag)),
  );
  const paths = Object.fromEntries(chosen);
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  const schemes = operations.flatMap(({ security }) => security.flatMap((one) => Object.keys(one)));
  const used = new Set(schemes.map((name) => `securitySchemes/${name}`));
  const visit = (part: unknown): void => {
    for (const [, kind = '', name = ''] of JSON.stringify(part).matchAll(REFERENCE)) {
      if (used.has(`${kind}/${name}`)) continue;
      used.add(`${kind}/${name}`);
      visit((components as unknown as Parts)[kind]?.[name] ?? {});
    }
  };
  visit(paths);
  const kept = Object.entries(components as unknown as Parts).map(([kind, parts]) => [
    kind,
    Object.fromEntries(Object.entries(parts).filter(([name]) => used.has(`${kind}/${name}`))),
  ]);
  const tags = document.tags.filter(({ name }) => name === tag);
  return { ...document, tags, paths, components: Object.fromEntries(kept) as never };
}
