import ts from 'typescript';
import type { SourceFile } from './import-graph.js';

/** A place that makes an object in V8's old generation each time it runs. */
export interface OldObject {
  readonly path: string;
  /** The target of the assignment, or the call: `response.writeHead`. */
  readonly what: string;
}

/**
 * Returns the places of a file that make an object in V8's old generation whenever the function
 * around them runs (docs/performance/garbage.md). They are a function literal that is assigned to a
 * property, a getter that is defined on an object, and a snapshot of the asynchronous context. A
 * place outside of every function runs only once, and is left out.
 */
export function oldObjectsOf({ path, text }: SourceFile): OldObject[] {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found: OldObject[] = [];
  const visit = (node: ts.Node, isInFunction: boolean): void => {
    const what = isInFunction ? oldObjectOf(node) : undefined;
    if (what !== undefined) found.push({ path, what });
    ts.forEachChild(node, (child) => visit(child, isInFunction || ts.isFunctionLike(node)));
  };
  visit(source, false);
  return found;
}

/** Calls that define a getter on an object, or contain such a call. */
const DEFINING =
  /^(?:Object|Reflect)\.definePropert(?:y|ies)$|^(?:AsyncLocalStorage|AsyncResource)\.(?:snapshot|bind)$/;

function oldObjectOf(node: ts.Node): string | undefined {
  if (ts.isCallExpression(node)) {
    const name = node.expression.getText();
    if (!DEFINING.test(name)) return undefined;
    if (name.startsWith('Async')) return name;
    const [target, , descriptor] = node.arguments;
    return definesGetter(descriptor) ? `${name}(${target?.getText()})` : undefined;
  }
  if (!ts.isBinaryExpression(node) || !isAssignment(node)) return undefined;
  const { left, right } = node;
  const isProperty = ts.isPropertyAccessExpression(left) || ts.isElementAccessExpression(left);
  return isProperty && isFunction(right) ? left.getText() : undefined;
}

function isAssignment({ operatorToken: { kind } }: ts.BinaryExpression): boolean {
  return kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;
}

function isFunction(node: ts.Expression): boolean {
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) {
    return isFunction(node.expression);
  }
  return ts.isArrowFunction(node) || ts.isFunctionExpression(node);
}

/** Returns true if a descriptor has a getter, or is not written at the call. */
function definesGetter(descriptor: ts.Expression | undefined): boolean {
  if (!descriptor || !ts.isObjectLiteralExpression(descriptor)) return true;
  return descriptor.properties.some(({ name }) => name?.getText() === 'get');
}
