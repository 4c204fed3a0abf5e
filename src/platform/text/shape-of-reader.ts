import { z } from 'zod';

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
