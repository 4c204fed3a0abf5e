import { z } from 'zod';
import { isSingleLine } from '#platform/text/single-line.js';

/** A line of text that an admin writes: trimmed, not empty, 256 characters at most. */
export const LINE_OF_TEXT = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .refine((text) => Array.from(text).length <= 256, 'must have at most 256 characters')
  .refine(isSingleLine, 'must be one line of text');
