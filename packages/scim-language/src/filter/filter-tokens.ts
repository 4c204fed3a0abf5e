import { isStorable } from '../schema/literal.js';

/** A token (the smallest unit) of a filter or path; `at` is the offset of its first character. */
export type Token =
  | { readonly kind: 'word'; readonly text: string; readonly at: number }
  | { readonly kind: 'string'; readonly value: string; readonly at: number }
  | { readonly kind: '(' | ')' | '[' | ']'; readonly at: number };

/** The error for a fault in the text of a token; `at` is the offset of the token. */
export class TokenError extends Error {
  override readonly name = 'TokenError';
  constructor(
    message: string,
    readonly at: number,
  ) {
    super(message);
  }
}

const isSpace = (char: string): boolean =>
  char === ' ' || char === '\t' || char === '\n' || char === '\r';
const isBracket = (char: string): char is '(' | ')' | '[' | ']' =>
  char === '(' || char === ')' || char === '[' || char === ']';

/**
 * Splits a filter into tokens in one pass. A word is the text between spaces, brackets and quotes:
 * an attribute path, an operator or a literal. Strings are JSON strings (RFC 7644 §3.4.2.2).
 * @throws TokenError for a string without an end, or a text that PostgreSQL cannot store
 */
export function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const char = text.charAt(at);
    if (isSpace(char)) {
      at += 1;
    } else if (isBracket(char)) {
      tokens.push({ kind: char, at });
      at += 1;
    } else if (char === '"') {
      const end = endOfString(text, at);
      tokens.push({ kind: 'string', value: jsonString(text.slice(at, end), at), at });
      at = end;
    } else {
      const end = endOfWord(text, at);
      tokens.push({ kind: 'word', text: text.slice(at, end), at });
      at = end;
    }
  }
  return tokens;
}

function endOfWord(text: string, start: number): number {
  let at = start;
  for (; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (isSpace(char) || isBracket(char) || char === '"') break;
  }
  return at;
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === '\\') at += 1;
    else if (char === '"') return at + 1;
  }
  throw new TokenError('is a string without an end', start);
}

function jsonString(literal: string, at: number): string {
  let value: unknown;
  try {
    value = JSON.parse(literal);
  } catch {
    throw new TokenError('is not a JSON string', at);
  }
  if (typeof value !== 'string' || !isStorable(value)) {
    throw new TokenError('contains a character that no value can contain', at);
  }
  return value;
}
