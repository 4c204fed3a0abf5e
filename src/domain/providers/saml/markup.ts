import { DomainError } from '#platform/errors/domain-error.js';

/** The limits that an XML document must keep, which are checked before the document is parsed. */
export interface MarkupLimits {
  /** The greatest depth of elements within elements. */
  readonly depth: number;
  /** The greatest number of elements. */
  readonly elements: number;
  /** True for a document that may have comments, such as published metadata. */
  readonly comments: boolean;
}

/**
 * Matches one start or end tag. No attribute value and no text contains a `<` (XML 1.0 §2.4), so a
 * match never extends into the next tag.
 */
const TAG =
  /<(?<close>\/?)(?<name>[A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?)(?:\s+[A-Za-z_][\w:.-]*\s*=\s*(?:"[^"<]*"|'[^'<]*'))*\s*(?<empty>\/?)>/y;
const COMMENT = /<!--(?:(?!--)[^])*-->/y;
/**
 * Matches the XML declaration of a document in XML 1.0 and UTF-8. A document with any other
 * declaration is refused, because this service decodes every document as UTF-8.
 */
const DECLARATION =
  /^\s*<\?xml\s+version\s*=\s*(?:"1\.0"|'1\.0')(?:\s+encoding\s*=\s*(?:"utf-8"|'utf-8'))?(?:\s+standalone\s*=\s*(?:"(?:yes|no)"|'(?:yes|no)'))?\s*\?>/i;
const ATTRIBUTE = /=\s*(?:"[^"]*"|'[^']*')/g;
/**
 * The most attributes of an element. The number is limited, because the time to compute the
 * canonical form of the XML, which is signed, grows with the square of their number.
 */
const MOST_ATTRIBUTES = 40;
/**
 * Matches an entity reference that is neither to a character nor to one of the five entities that
 * XML itself defines (XML 1.0 §4.6).
 */
const UNKNOWN_ENTITY = /&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[\da-fA-F]{1,6});)/;
/** Matches a character that XML does not allow (XML 1.0 §2.2). */
// oxlint-disable-next-line no-control-regex -- these are the characters that are refused
const NO_XML_CHARACTER = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Cs}/u;

/**
 * Checks that a text is well-formed XML within the limits, with one root and matching tags. It must
 * have no document type, no entity of its own, no CDATA section and no processing instruction. The
 * check runs before any parser, so that no parser sees dangerous markup.
 *
 * @throws DomainError sign_in_failed with a detail that quotes nothing of the text
 */
export function assertPlainMarkup(text: string, limits: MarkupLimits): void {
  if (NO_XML_CHARACTER.test(text)) throw notPlain('has characters that XML does not allow');
  const body = text.replace(DECLARATION, '');
  if (UNKNOWN_ENTITY.test(body)) throw notPlain('uses an entity');
  checkTags(body, limits);
}

/**
 * Checks that a document has one root, that its tags match, and that it is within the limits.
 *
 * @throws DomainError sign_in_failed
 */
function checkTags(body: string, { depth, elements, comments }: MarkupLimits): void {
  const open: string[] = [];
  let roots = 0;
  let count = 0;
  let at = 0;
  for (;;) {
    const next = body.indexOf('<', at);
    const text = body.slice(at, next < 0 ? undefined : next);
    if (open.length === 0 && text.trim() !== '') throw notPlain('has text outside its root');
    if (next < 0) break;
    const skipped = comments ? endOfMatch(COMMENT, body, next) : undefined;
    if (skipped !== undefined) {
      at = skipped;
      continue;
    }
    const [tag, { close, name = '', empty }] = tagAt(body, next);
    at = TAG.lastIndex;
    if (close) {
      if (empty || open.pop() !== name) throw notPlain('is not well-formed');
      continue;
    }
    count += 1;
    if (open.length === 0) roots += 1;
    if (!empty) open.push(name);
    const attributes = tag.match(ATTRIBUTE)?.length ?? 0;
    if (open.length > depth || count > elements || attributes > MOST_ATTRIBUTES)
      throw notPlain('is nested too deeply or too large');
  }
  if (open.length > 0 || roots !== 1) throw notPlain('is not well-formed');
}

/**
 * Returns the tag at a position of the text, and sets `TAG` to search after it.
 *
 * @throws DomainError sign_in_failed
 */
function tagAt(body: string, at: number): [tag: string, groups: Record<string, string>] {
  TAG.lastIndex = at;
  const match = TAG.exec(body);
  return match ? [match[0], match.groups ?? {}] : refuseMarkup(body, at);
}

function endOfMatch(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

/**
 * Throws the error for a `<` that begins no tag.
 *
 * @throws DomainError sign_in_failed; its text names the kind of markup, such as a comment
 */
function refuseMarkup(body: string, at: number): never {
  const start = body.slice(at, at + 9).toUpperCase();
  if (start === '<!DOCTYPE') throw notPlain('has a document type declaration (DTD)');
  if (start.startsWith('<![CDATA[')) throw notPlain('has a CDATA section');
  if (start.startsWith('<!--')) throw notPlain('has a comment');
  if (start.startsWith('<?')) throw notPlain('has a processing instruction');
  throw notPlain('is not well-formed');
}

function notPlain(fault: string): DomainError {
  return new DomainError('sign_in_failed', `The XML of the identity provider ${fault}.`);
}
