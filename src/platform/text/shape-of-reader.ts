import { z } from 'zod';

/**
 * Makes a Zod shape from a function that reads a value. The value is invalid if the function throws
 * or returns undefined.
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
      // The message below omits the reason, which may quote the value.
    }
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });
}
