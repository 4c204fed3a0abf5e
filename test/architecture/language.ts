import { globSync, readFileSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import { parseSync } from 'rolldown/utils';
import ts from 'typescript';

const ROOT = resolve(import.meta.dirname, '../..');

/**
 * Matches the pronouns that comments and documents should avoid, because each of them hides a noun
 * that the reader needs.
 */
const PRONOUN =
  /\b(?:whoever|whomever|whom|somebody|nobody|anybody|everybody|whatever|elsewhere|anew)\b/gi;
/** Matches the opening of a clause that is not a sentence, such as "What ends with a user". */
const CLAUSE = /^(?:What|Who|Whose|Whom|Whether)\b/;

/** A piece of English: a comment, a title or a line of a document. */
export interface Prose {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/**
 * The number of words in some prose, the number of listed pronouns, and pronouns per 1,000 words.
 */
export interface WordCount {
  readonly words: number;
  readonly pronouns: number;
  readonly perThousand: number;
}

/** Returns the paths of the project's files that match one of the glob patterns, sorted. */
export function filesLike(...patterns: readonly string[]): string[] {
  return globSync([...patterns], { cwd: ROOT }).toSorted();
}

/** Reads one file of the project, and returns the prose that `take` extracts from its text. */
export function proseOf(path: string, take: (path: string, text: string) => Prose[]): Prose[] {
  return take(path, readFileSync(join(ROOT, path), 'utf8'));
}

/** Counts words and listed pronouns. */
export function countWords(prose: readonly Prose[]): WordCount {
  const count = (pattern: RegExp) =>
    prose.reduce((sum, { text }) => sum + (text.match(pattern)?.length ?? 0), 0);
  const words = count(/[A-Za-z][A-Za-z'’-]*/g);
  const pronouns = count(PRONOUN);
  return { words, pronouns, perThousand: words === 0 ? 0 : (1000 * pronouns) / words };
}

/** Keeps the prose that uses a listed pronoun. */
export function withPronouns(prose: readonly Prose[]): Prose[] {
  return prose.filter(({ text }) => text.search(PRONOUN) >= 0);
}

/** Extracts every comment of a TypeScript, JavaScript, CSS or Eta file. */
export function commentsOf(path: string, text: string): Prose[] {
  if (['.ts', '.js'].includes(extname(path))) return scriptComments(path, text);
  const comments = text.matchAll(/\/\*[\s\S]*?\*\/|<!--[\s\S]*?-->/g);
  return [...comments].map((match) => proseAt(path, text, match.index, match[0]));
}

/** Extracts the lines of a Markdown document that lie outside fenced code. */
export function documentLines(path: string, text: string): Prose[] {
  let isCode = false;
  return text.split('\n').flatMap((content, index) => {
    const isFence = /^\s*(?:```|~~~)/.test(content);
    if (isFence) isCode = !isCode;
    return isFence || isCode ? [] : [{ path, line: index + 1, text: content }];
  });
}

/** Extracts the titles given to `describe`, `it` and `test`, those of `each` included. */
export function titlesOf(path: string, text: string): Prose[] {
  const titles: Prose[] = [];
  const source = parse(path, text);
  const visit = (node: ts.Node): void => {
    const title = ts.isCallExpression(node) && isTestCall(node) ? node.arguments[0] : undefined;
    if (title && isText(title)) {
      titles.push(proseAt(path, text, title.getStart(source), title.getText(source)));
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return titles;
}

/** Finds doc comments that begin with a relative pronoun instead of a sentence. */
export function clausesAsDocComments(path: string, text: string): Prose[] {
  return scriptComments(path, text)
    .filter(({ text: comment }) => comment.startsWith('/**'))
    .map((comment) => ({ ...comment, text: comment.text.replace(/^\/\*\*[\s*]*/, '') }))
    .filter(({ text: content }) => CLAUSE.test(content));
}

function parse(path: string, text: string): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
}

function proseAt(path: string, text: string, at: number, content: string): Prose {
  return { path, line: text.slice(0, at).split('\n').length, text: content };
}

/**
 * The comments of each script that was parsed, by its path, so that several tests parse a script
 * once.
 */
const commentsOfScripts = new Map<string, { readonly text: string; readonly comments: Prose[] }>();

/**
 * Finds the comments of a script. The parser of rolldown needs a tenth of the time of the
 * TypeScript compiler.
 */
function scriptComments(path: string, text: string): Prose[] {
  const known = commentsOfScripts.get(path);
  if (known?.text === text) return known.comments;
  const comments = parseSync(path, text).comments.map(({ start, end }) =>
    proseAt(path, text, start, text.slice(start, end)),
  );
  commentsOfScripts.set(path, { text, comments });
  return comments;
}

function isTestCall(call: ts.CallExpression): boolean {
  let callee: ts.Expression = call.expression;
  while (ts.isCallExpression(callee) || ts.isPropertyAccessExpression(callee)) {
    callee = callee.expression;
  }
  return ts.isIdentifier(callee) && ['describe', 'it', 'test'].includes(callee.text);
}

function isText(node: ts.Expression): boolean {
  return (
    ts.isStringLiteralLike(node) || ts.isTemplateExpression(node) || ts.isBinaryExpression(node)
  );
}
