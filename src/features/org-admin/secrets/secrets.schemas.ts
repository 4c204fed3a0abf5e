import { z } from 'zod';
import type { ListedSecret } from '#domain/admin/database-failover/reconciliation/listed-secrets.repository.js';

/** The path parameter of a secret to confirm. A text that is no UUID gets 404, and not 400. */
export const LISTED_ID = z.object({ id: z.string().describe('The id of the entry.') });

/**
 * A secret that an admin has to confirm, because the database may have lost its creation or its end
 * in a failover.
 */
export const SECRET_TO_CONFIRM_JSON = z
  .object({
    id: z.string().meta({ description: 'The id of the entry, by which it is confirmed.' }),
    kind: z.enum(['scim_token', 'api_token', 'client_secret']).describe('The kind of the secret.'),
    secret_id: z.string().describe('The id of the secret.'),
    client_id: z
      .string()
      .nullable()
      .meta({ description: 'The application of a secret; null for a token.' }),
    name: z.string().meta({
      description: 'The description or name of the token, or the name of the application.',
    }),
    act: z.enum(['made', 'ended']).describe('The act of which the database may know nothing.'),
    lost: z.boolean().meta({
      description:
        'True if the database had lost the act: what was made is gone, what was ended was ended again.',
    }),
    happened_at: z.iso.datetime().describe('The time of the act.'),
    valid: z.boolean().meta({ description: 'True if the secret is valid now.' }),
  })
  .meta({ id: 'SecretToConfirm', description: 'A secret that an admin has to confirm.' });

/** The secrets to confirm of an organization. */
export const SECRETS_TO_CONFIRM_JSON = z
  .object({ secrets: z.array(SECRET_TO_CONFIRM_JSON).describe('The secrets.') })
  .describe('The secrets to confirm.');
/**
 * The type of a secret that an admin has to confirm in the JSON of the API, by which the compiler
 * checks answers.
 */
export type SecretToConfirmJson = z.output<typeof SECRET_TO_CONFIRM_JSON>;

/**
 * Renders a secret to confirm as JSON: its creation or its end, and whether the database has lost
 * that.
 */
export function secretToConfirmJson(listed: ListedSecret): SecretToConfirmJson {
  return {
    id: listed.id,
    kind: listed.secret,
    secret_id: listed.secretId,
    client_id: listed.clientId,
    name: listed.name,
    act: listed.act,
    lost: listed.isLost,
    happened_at: listed.happenedAt.toISOString(),
    valid: listed.isValid,
  };
}
