import { z } from 'zod';

/**
 * Makes the schema of a query parameter that limits the items of a page. A query is a text, but to
 * clients the parameter is a number, so `/openapi.json` gives it the type `integer`.
 *
 * @param most the largest number that a client may request
 */
export function pageLimit(most: number) {
  return z
    .string()
    .regex(/^\d{1,4}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(1).max(most))
    .meta({ type: 'integer', minimum: 1, maximum: most });
}
