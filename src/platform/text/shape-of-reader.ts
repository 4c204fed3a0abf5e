import { z } from 'zod';

/**
 * Makes a Zod schema from a function that converts a value. The value is invalid if the function
 * throws or returns undefined.
 */
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
      // The error of the function is dropped, because its message may quote the value, which may be
      // a secret.
    }
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });
}
