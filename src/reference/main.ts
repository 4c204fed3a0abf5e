import 'reflect-metadata';
import { mkdirSync, writeFileSync } from 'node:fs';
import { referencePages } from './reference-pages.js';

/**
 * `npm run reference`: writes docs/reference/ from the routes and the configuration schema. It
 * needs no database.
 */
const FOLDER = 'docs/reference';

mkdirSync(FOLDER, { recursive: true });
for (const [name, text] of Object.entries(await referencePages())) {
  writeFileSync(`${FOLDER}/${name}`, text);
  process.stdout.write(`wrote ${FOLDER}/${name}\n`);
}
