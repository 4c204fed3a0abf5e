import ts from 'typescript';

/** The name that the counters have as a variable of the instrumented code. */
const COUNTERS = 'svcFuzzCounters';

/** Instrumented code, and the number of blocks in it that have a counter. */
export interface Instrumented {
  readonly code: string;
  readonly blocks: number;
}

/** The property of `globalThis` in which instrumented code finds its counters when it is loaded. */
export const GLOBAL_COUNTERS = 'svcFuzzCounters';

/**
 * Adds a counter to each block of a JavaScript module. Blocks are the bodies of functions,
 * branches, loops and cases, and the operands that `&&`, `||`, `??` and `?:` may skip.
 */
export function instrument(text: string): Instrumented {
  let blocks = 0;
  const factory = ts.factory;
  const counted = () => {
    const counter = factory.createElementAccessExpression(
      factory.createIdentifier(COUNTERS),
      factory.createNumericLiteral((blocks += 1)),
    );
    return factory.createPostfixIncrement(counter);
  };
  const statement = () => factory.createExpressionStatement(counted());
  const comma = (inner: ts.Expression) =>
    factory.createParenthesizedExpression(
      factory.createBinaryExpression(counted(), ts.SyntaxKind.CommaToken, inner),
    );
  const branch = (inner: ts.Statement): ts.Statement =>
    ts.isBlock(inner) ? inner : factory.createBlock([statement(), inner], true);
  const otherwise = (inner: ts.Statement | undefined): ts.Statement =>
    inner === undefined || ts.isIfStatement(inner)
      ? (inner ?? factory.createBlock([statement()], true))
      : branch(inner);

  const rewritten = (node: ts.Node): ts.Node => {
    if (ts.isBlock(node)) {
      return factory.updateBlock(node, [statement(), ...node.statements]);
    }
    if (ts.isIfStatement(node)) {
      const { expression, thenStatement, elseStatement } = node;
      const [then, other] = [branch(thenStatement), otherwise(elseStatement)];
      return factory.updateIfStatement(node, expression, then, other);
    }
    if (ts.isCaseClause(node)) {
      return factory.updateCaseClause(node, node.expression, [statement(), ...node.statements]);
    }
    if (ts.isDefaultClause(node)) {
      return factory.updateDefaultClause(node, [statement(), ...node.statements]);
    }
    if (ts.isArrowFunction(node) && !ts.isBlock(node.body)) {
      const { modifiers, parameters, equalsGreaterThanToken: arrow } = node;
      const body = comma(node.body);
      return factory.updateArrowFunction(
        node,
        modifiers,
        undefined,
        parameters,
        undefined,
        arrow,
        body,
      );
    }
    if (ts.isConditionalExpression(node)) {
      const { condition, questionToken, colonToken } = node;
      const [yes, no] = [comma(node.whenTrue), comma(node.whenFalse)];
      return factory.updateConditionalExpression(
        node,
        condition,
        questionToken,
        yes,
        colonToken,
        no,
      );
    }
    if (ts.isBinaryExpression(node) && DECIDING.has(node.operatorToken.kind)) {
      return factory.updateBinaryExpression(node, node.left, node.operatorToken, comma(node.right));
    }
    return node;
  };
  const transformer: ts.TransformerFactory<ts.SourceFile> = (context) => {
    const visit = (node: ts.Node): ts.Node => rewritten(ts.visitEachChild(node, visit, context));
    return (file) => ts.visitEachChild(file, visit, context);
  };
  const file = ts.createSourceFile('bundle.js', text, ts.ScriptTarget.ES2024, true);
  const { transformed } = ts.transform(file, [transformer]);
  const code = ts.createPrinter().printFile(transformed[0] ?? file);
  return { code: `const ${COUNTERS} = globalThis.${GLOBAL_COUNTERS};\n${code}`, blocks };
}

/** The operators that may skip their right operand, so that this operand is a block. */
const DECIDING: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.AmpersandAmpersandToken,
  ts.SyntaxKind.BarBarToken,
  ts.SyntaxKind.QuestionQuestionToken,
]);
