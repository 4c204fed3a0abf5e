import { z } from 'zod';

/** A problem document (RFC 9457). */
export const PROBLEM = z
  .object({
    type: z.url().meta({ description: 'The address of the page that explains the code.' }),
    title: z.string(),
    status: z.int(),
    detail: z.string().meta({ description: 'The fact and the remedy, for people.' }),
    code: z.string().meta({ description: 'A code of the error catalogue, for programs.' }),
  })
  .meta({ id: 'Problem' });

/** An error of the OAuth endpoints (RFC 6749 §5.2). */
export const OAUTH_ERROR = z
  .object({ error: z.string(), error_description: z.string().optional() })
  .meta({ id: 'OAuthError' });

/** An error of SCIM (RFC 7644 §3.12). */
export const SCIM_ERROR = z
  .object({
    schemas: z.array(z.string()),
    status: z.string().meta({ description: 'The HTTP status as a text.' }),
    scimType: z.string().optional(),
    detail: z.string().optional(),
  })
  .meta({ id: 'ScimError' });
