import { z } from 'zod';
import { CATALOGUE, type ErrorCode } from '#platform/errors/catalogue.js';
import { EXPLANATIONS } from '#platform/errors/explanations.js';
import { SAMPLE_ORIGIN } from './operation-example.js';

/** The schema of a problem document (RFC 9457), for `/openapi.json`. */
export const PROBLEM = z
  .object({
    type: z.url().meta({ description: 'The URL of the page that explains the code.' }),
    title: z.string().meta({ description: 'The kind of the error, for people.' }),
    status: z.int().meta({ description: 'The HTTP status.' }),
    detail: z.string().meta({ description: 'The fact and the remedy, for people.' }),
    code: z.string().meta({ description: 'A code of the error catalogue, for programs.' }),
  })
  .meta({ id: 'Problem', description: 'An error as a problem document (RFC 9457).' });

/** The schema of an error of the OAuth endpoints (RFC 6749 §5.2), for `/openapi.json`. */
export const OAUTH_ERROR = z
  .object({
    error: z.string().meta({ description: 'The code of the error, for programs.' }),
    error_description: z.string().optional().meta({ description: 'The fact and the remedy.' }),
  })
  .meta({ id: 'OAuthError', description: 'An error of the OAuth endpoints (RFC 6749 §5.2).' });

/** The schema of an error of SCIM (RFC 7644 §3.12), for `/openapi.json`. */
export const SCIM_ERROR = z
  .object({
    schemas: z.array(z.string()).meta({ description: 'The schema of an error.' }),
    status: z.string().meta({ description: 'The HTTP status as a text.' }),
    scimType: z.string().optional().meta({ description: 'The kind of a 400, for programs.' }),
    detail: z.string().optional().meta({ description: 'The fact and the remedy, for people.' }),
  })
  .meta({ id: 'ScimError', description: 'An error of SCIM (RFC 7644 §3.12).' });

/**
 * Returns a problem document (RFC 9457) as the example of an error code. Its detail is the cause
 * from the page of the code.
 */
export function problemExample(code: ErrorCode): object {
  const { title, status } = CATALOGUE[code];
  const detail = EXPLANATIONS[code].cause;
  return { type: `${SAMPLE_ORIGIN}/errors/${code}`, title, status, detail, code };
}

/**
 * Returns an OAuth error (RFC 6749 §5.2) as the example of an error code. Its description is the
 * cause from the page of the code.
 */
export function oauthExample(code: ErrorCode): object {
  return { error: CATALOGUE[code].oauth, error_description: EXPLANATIONS[code].cause };
}

/**
 * Returns a SCIM error (RFC 7644 §3.12) as the example of an error code. Its detail is the cause
 * from the page of the code.
 */
export function scimExample(code: ErrorCode): object {
  const { status, ...row } = CATALOGUE[code];
  return {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
    status: String(status),
    ...('scimType' in row && { scimType: row.scimType }),
    detail: EXPLANATIONS[code].cause,
  };
}
