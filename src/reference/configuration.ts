import { PROVIDER_VARIABLES } from '#platform/config/table/providers.js';
import { VARIABLES } from '#platform/config/table/settings.js';
import type { Variable } from '#platform/config/table/variable.js';
import { listItem } from './markdown.js';

/** Returns the Markdown of the page of all environment variables, from the table of variables. */
export function configurationPage(): string {
  return `# Configuration

\`npm run reference\` writes this page from \`src/platform/config/table\`. Do not edit it.

The service reads environment variables, or a \`.env\` file in the working directory; the environment
wins. An empty string counts as unset. [config/example.env](../../config/example.env) has all
variables with comments. The value of a variable marked **secret** could be used to act as the
service or as a user: give it to the service only. The default of a variable is in brackets.

${listOf(VARIABLES)}

## Identity providers

Each slug in \`SVC_IDPS\` has these variables. \`<SLUG>\` is the slug in upper case, with underscores in
place of hyphens.

${listOf(PROVIDER_VARIABLES, 'SVC_IDP_<SLUG>_')}
`;
}

function listOf(variables: ReadonlyMap<string, Variable>, prefix = ''): string {
  const items = [...variables.values()].map((row) => {
    const meaning = row.isSecret ? `**Secret.** ${row.meaning}` : row.meaning;
    return listItem(`\`${prefix}${row.name}\` (${row.unset ?? defaultOf(row)}): ${meaning}`);
  });
  return items.join('\n');
}

function defaultOf({ shape }: Variable): string {
  const { success, data } = shape.safeParse(undefined);
  if (!success) return '**required**';
  if (typeof data === 'string' || typeof data === 'number' || data === true) return `\`${data}\``;
  return Array.isArray(data) ? 'none' : 'unset';
}
