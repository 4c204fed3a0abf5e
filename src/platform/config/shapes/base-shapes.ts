import { z } from 'zod';

/** The forms that a setting has in the JSON document of an object store, beside a string. */
export type JsonForm = 'list' | 'pem' | 'number' | 'flag';

/** The form of each shape in JSON. A shape that is missing here is a string. */
export const JSON_FORMS = z.registry<{ readonly form: JsonForm }>();

/** Makes a shape of a reader, which throws or returns undefined for a wrong value. */
export function readBy<From extends z.ZodType, T>(
  from: From,
  read: (value: z.output<From>) => T | undefined,
  message: string,
) {
  return from.transform((value, context): T => {
    try {
      const result = read(value);
      if (result !== undefined) return result;
    } catch {
      // The message below omits the reason, which may quote the value.
    }
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });
}

/** A text of a pattern. */
export const text = (pattern: RegExp, message: string) => z.string().regex(pattern, message);
/** PEM, base64 of it, or the path of a file. */
export const pem = z.string().register(JSON_FORMS, { form: 'pem' });

/** A comma-separated list; empty items are dropped. */
export const list = z
  .string()
  .register(JSON_FORMS, { form: 'list' })
  .transform((items) => items.split(',').map((item) => item.trim()))
  .transform((items) => items.filter((item) => item !== ''));

/** A text with a greatest length. */
export const shortText = (most: number) =>
  z.string().max(most, `must have ${most} characters at most`);

/** A text with a least length. */
export const longText = (least: number) =>
  z.string().min(least, `must have at least ${least} characters`);

/** The root secret, from which every other secret derives. */
export const rootSecret = longText(32).refine(
  (value) => new Set(value).size > 1,
  'must not be one repeated character',
);

/** A whole number between two limits, both included. */
export const wholeNumber = (minimum: number, maximum: number) =>
  text(/^\d{1,9}$/, 'must be a whole number')
    .register(JSON_FORMS, { form: 'number' })
    .transform(Number)
    .refine((n) => n >= minimum && n <= maximum, `must be between ${minimum} and ${maximum}`);

/** `true` or `false`, the default. */
export const flag = z
  .enum(['true', 'false'], 'must be true or false')
  .register(JSON_FORMS, { form: 'flag' })
  .default('false')
  .transform((value) => value === 'true');
