import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { ApiDocument } from '../../../src/platform/http/openapi/api-document.service.js';

/**
 * Writes an application's OpenAPI document into the folder of the recorded responses, unless the
 * folder has one. At the end of the run, the responses are compared with this document.
 */
export async function keepDocument(nest: NestExpressApplication): Promise<void> {
  const folder = process.env['TEST_TRAFFIC'];
  if (folder === undefined) return;
  const file = join(folder, 'document.json');
  if (existsSync(file)) return;
  // another process may have removed the folder, and no test should fail because of that
  mkdirSync(folder, { recursive: true });
  const { encoded } = await nest.get(ApiDocument).served();
  writeFileSync(file, encoded.content);
}
