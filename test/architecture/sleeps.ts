import ts from 'typescript';
import type { SourceFile } from './import-graph.js';

/** A line of a test that waits for a fixed time and not for a condition. */
export interface Sleep {
  readonly path: string;
  /** The call as it is written: `delay(400)`. */
  readonly call: string;
}

/** The longest wait, in milliseconds, that needs no reason in the list of sleeps.test.ts. */
const LONGEST = 50;

/** Returns the waits of a file that are longer than 50 ms, or whose length is not a literal. */
export function sleepsOf({ path, text }: SourceFile): Sleep[] {
  if (!/timers|setTimeout|\.sleep\(|pg_sleep|waitForTimeout/.test(text)) return [];
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const waits = namesOfTimers(source);
  const found: Sleep[] = [];
  const visit = (node: ts.Node): void => {
    const length = lengthOf(node, waits);
    if (length !== undefined && !(length <= LONGEST)) {
      found.push({ path, call: node.getText(source).replaceAll(/\s+/g, ' ') });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Returns the local names of the `setTimeout` that a file imports from `timers/promises`. */
function namesOfTimers(source: ts.SourceFile): Set<string> {
  const names = source.statements.flatMap((node) => {
    if (!ts.isImportDeclaration(node) || !/'(?:node:)?timers\/promises'/.test(node.getText(source)))
      return [];
    const bindings = node.importClause?.namedBindings;
    return bindings && ts.isNamedImports(bindings)
      ? bindings.elements.filter((one) => (one.propertyName ?? one.name).text === 'setTimeout')
      : [];
  });
  return new Set(names.map(({ name }) => name.text));
}

/**
 * Returns the milliseconds of a wait: NaN for a computed length, and undefined for a node that does
 * not wait.
 */
function lengthOf(node: ts.Node, waits: ReadonlySet<string>): number | undefined {
  if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) {
    const [, seconds] = /pg_sleep\(([^)]*)\)/.exec(node.getText()) ?? [];
    return seconds === undefined ? undefined : Number(seconds) * 1000;
  }
  if (!ts.isCallExpression(node)) return undefined;
  const name = node.expression.getText();
  const [first, second] = node.arguments;
  if (waits.has(name) || /\.(?:sleep|waitForTimeout)$/.test(name)) return numberOf(first);
  // A `setTimeout` counts as a wait only if its callback resolves a promise. With another callback
  // it is a time limit.
  const goesOn = name === 'setTimeout' && /^(?:resolve|done|next)$/.test(first?.getText() ?? '');
  return goesOn ? numberOf(second) : undefined;
}

function numberOf(node: ts.Node | undefined): number {
  return node && ts.isNumericLiteral(node) ? Number(node.text) : Number.NaN;
}
