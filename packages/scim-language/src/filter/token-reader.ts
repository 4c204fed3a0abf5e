import { asciiLowerCase } from '../text/ascii.js';
import { ScimError } from '../errors/scim-error.js';
import type { RawLiteral } from '../schema/literal.js';
import { tokensOf, TokenError, type Token } from './filter-tokens.js';

/** The error code (`scimType` of RFC 7644 §3.12) of a faulty filter, or of a faulty path. */
export type ParseErrorCode = 'invalidFilter' | 'invalidPath';

const MAX_BYTES = 8192;

/** A name in a filter or path. `at` is the offset of its first character. */
export interface Word {
  readonly text: string;
  readonly at: number;
}

/** Reads the tokens of a filter or path one after the other. */
export class TokenReader {
  readonly #tokens: readonly Token[];
  #next = 0;

  /**
   * Splits a text into tokens.
   * @throws ScimError `code` for a text that is too long or cannot be split into tokens
   */
  constructor(
    text: string,
    /**
     * The error code for the next fault. The parser sets it to `invalidFilter` between the brackets
     * of a path.
     */
    public code: ParseErrorCode,
  ) {
    if (Buffer.byteLength(text) > MAX_BYTES) {
      throw new ScimError(code, `The text is longer than ${MAX_BYTES} bytes.`);
    }
    this.#tokens = this.#cut(text);
  }

  /** Returns the next token, or a later one, without reading it. */
  peek(ahead = 0): Token | undefined {
    return this.#tokens[this.#next + ahead];
  }

  /** Reads the next token as a name. Any other token is a fault. */
  word(): Word {
    const token = this.peek();
    if (token?.kind !== 'word') this.refuse('must be a name', token?.at);
    this.#next += 1;
    return token;
  }

  /**
   * Returns true and reads the next token if it is the given keyword, in any case. Otherwise reads
   * nothing and returns false.
   */
  takeWord(wanted: string): boolean {
    const token = this.peek();
    if (token?.kind !== 'word' || asciiLowerCase(token.text) !== wanted) return false;
    this.#next += 1;
    return true;
  }

  bracket(kind: '(' | ')' | '[' | ']'): void {
    const token = this.peek();
    if (token?.kind !== kind) this.refuse(`must be "${kind}"`, token?.at);
    this.#next += 1;
  }

  end(): void {
    const token = this.peek();
    if (token) this.refuse('must be the end', token.at);
  }

  #cut(text: string): Token[] {
    try {
      return tokensOf(text);
    } catch (error) {
      if (error instanceof TokenError) this.refuse(error.message, error.at);
      throw error;
    }
  }

  /**
   * Reads the literal of a comparison: a string, a number, `true`, `false` or `null`. Any other
   * token is a fault.
   */
  literal(): RawLiteral {
    const token = this.peek();
    this.#next += 1;
    if (token?.kind === 'string') return token.value;
    if (token?.kind !== 'word') this.refuse('must be a value', token?.at);
    const word = asciiLowerCase(token.text);
    if (word === 'null') return null;
    if (word === 'true' || word === 'false') return word === 'true';
    return this.#number(word, token.at);
  }

  #number(word: string, at: number): number {
    try {
      const number: unknown = JSON.parse(word);
      if (typeof number === 'number') return number;
    } catch {
      // The word is no JSON value, so the code below throws the error.
    }
    return this.refuse('must be a value; put text in double quotes', at);
  }

  /** Reads the `.sub` after brackets; undefined if there is none. */
  suffix(): Word | undefined {
    const token = this.peek();
    if (token?.kind !== 'word' || !token.text.startsWith('.')) return undefined;
    this.#next += 1;
    return { text: token.text.slice(1), at: token.at };
  }

  /**
   * Throws the error for a fault. `at` is the offset of the fault; undefined for the end of the
   * text. The message does not repeat the client's text, which may be private.
   */
  refuse(problem: string, at: number | undefined): never {
    const place = at === undefined ? 'The end' : `The text from character ${at + 1}`;
    throw new ScimError(this.code, `${place} ${problem}.`);
  }
}
