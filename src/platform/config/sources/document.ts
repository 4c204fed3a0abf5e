/**
 * The document of an object store as it is written: its keys with their values, without `version`.
 */
export type ConfigurationDocument = ReadonlyMap<string, unknown>;

/** A document that cannot be read at all. The message quotes nothing of it. */
export class UnreadableDocument extends Error {
  override readonly name = 'UnreadableDocument';
}

/** Objects and arrays inside each other that a document may have; `idps` needs three. */
const MAX_DEPTH = 8;

/** Reads JSON text, strings whole, as a list of its tokens. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/gs;

/**
 * Reads a configuration document: a JSON object in UTF-8, with or without a byte order mark, of
 * version 1.
 *
 * @throws UnreadableDocument for every other content, and for a key that an object has twice
 */
export function readDocument(bytes: Buffer): ConfigurationDocument {
  const text = decode(bytes);
  const document = parse(text);
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    throw new UnreadableDocument('must be a JSON object');
  }
  checkStructure(text);
  const { version, ...settings } = document as Record<string, unknown>;
  if (version !== 1) throw new UnreadableDocument('must have "version": 1');
  return new Map(Object.entries(settings));
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UnreadableDocument('must be UTF-8');
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableDocument('is not JSON'); // the parser's message quotes the text
  }
}

/**
 * Refuses what `JSON.parse` accepts in silence: deep nesting, and a key twice, of which the parser
 * drops the first.
 */
function checkStructure(text: string): void {
  // the keys of each open object; undefined for an array
  const open: (Set<string> | undefined)[] = [];
  let last = '';
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === '{' || token === '[') open.push(token === '{' ? new Set() : undefined);
    else if (token === '}' || token === ']') open.pop();
    else if (token === ':') addKey(open.at(-1), last);
    if (open.length > MAX_DEPTH) throw new UnreadableDocument('is nested too deeply');
    last = token;
  }
}

function addKey(keys: Set<string> | undefined, token: string): void {
  const key = String(JSON.parse(token));
  if (keys?.has(key)) throw new UnreadableDocument('has an object with the same key twice');
  keys?.add(key);
}
