import type { z } from 'zod';
import { ENVIRONMENT, PROVIDER_SHAPES } from '#platform/config/environment.js';
import {
  MEANINGS,
  PROVIDER_MEANINGS,
  type VariableMeaning,
} from '#platform/config/variable-meanings.js';
import { markdownTable } from './markdown.js';

const HEAD = ['Variable', 'Default', 'Meaning'];

/** Writes the page of all environment variables from the schema of the environment. */
export function configurationPage(): string {
  return `# Configuration

\`npm run reference\` writes this page from \`src/platform/config/environment.ts\` and
\`variable-meanings.ts\` beside it. Do not edit it.

The service reads environment variables, or a \`.env\` file in the working directory; the environment
wins. An empty string counts as unset. [config/example.env](../../config/example.env) has all
variables with comments.

${markdownTable([HEAD, ...rowsOf(ENVIRONMENT.shape, MEANINGS)])}

## Identity providers

Each slug in \`SVC_IDPS\` has these variables. \`<SLUG>\` is the slug in upper case, with underscores in
place of hyphens.

${markdownTable([HEAD, ...rowsOf(PROVIDER_SHAPES, PROVIDER_MEANINGS, 'SVC_IDP_<SLUG>_')])}
`;
}

function rowsOf(
  schema: Readonly<Record<string, z.ZodType>>,
  meanings: Readonly<Record<string, VariableMeaning>>,
  prefix = '',
): string[][] {
  return Object.entries(schema).map(([name, variable]) => {
    const { meaning = '', unset } = meanings[name] ?? {};
    return [`\`${prefix}${name}\``, unset ?? defaultOf(variable), meaning];
  });
}

function defaultOf(variable: z.ZodType): string {
  const { success, data } = variable.safeParse(undefined);
  if (!success) return '**required**';
  if (typeof data === 'string' || typeof data === 'number') return `\`${data}\``;
  return Array.isArray(data) ? 'none' : 'unset';
}
