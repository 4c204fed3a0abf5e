/**
 * The error for a text that is no JSON object, or has unsafe contents. Its message quotes nothing
 * of the text.
 */
export class UnreadableObject extends Error {
  override readonly name = 'UnreadableObject';
}

/** The largest number of objects and arrays that may be nested in each other. */
const MAX_DEPTH = 8;

/**
 * Matches the tokens of a JSON text that show its structure. A string is one token, so that
 * brackets in it do not count.
 */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/gs;

/**
 * Reads a JSON object in UTF-8, with or without a byte order mark.
 *
 * @throws UnreadableObject for any other content, for deep nesting, and for a key that an object
 *   has twice
 */
export function readJsonObject(bytes: Buffer): Readonly<Record<string, unknown>> {
  const text = decode(bytes);
  const value = parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new UnreadableObject('must be a JSON object');
  }
  checkStructure(text);
  return value as Record<string, unknown>;
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UnreadableObject('must be UTF-8');
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableObject('is not JSON'); // not the parser's message, which quotes the text
  }
}

/**
 * Refuses two things that `JSON.parse` accepts: deep nesting, and a key that an object has twice.
 * The parser would ignore the first value of such a key.
 */
function checkStructure(text: string): void {
  // The keys of each open object; undefined for an open array.
  const open: (Set<string> | undefined)[] = [];
  let last = '';
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === '{' || token === '[') open.push(token === '{' ? new Set() : undefined);
    else if (token === '}' || token === ']') open.pop();
    else if (token === ':') addKey(open.at(-1), last);
    if (open.length > MAX_DEPTH) throw new UnreadableObject('is nested too deeply');
    last = token;
  }
}

function addKey(keys: Set<string> | undefined, token: string): void {
  const key = String(JSON.parse(token));
  if (keys?.has(key)) throw new UnreadableObject('has an object with the same key twice');
  keys?.add(key);
}
