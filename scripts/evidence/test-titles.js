import ts from 'typescript';

/** The names of the functions of vitest that make suites, and of those that make tests. */
const SUITES = new Set(['describe', 'suite']);
const TESTS = new Set(['it', 'test']);
/**
 * The character that replaces each part of a title that is known only when the test runs: `%s`,
 * `$name`, and the values in a template.
 */
const VALUE = '\u0000';
const PLACEHOLDER = /%[sdifjoO#]|\$[\w.]+/g;

/**
 * Reads the titles of a test file without running it. Tests that are made by a function of another
 * file are missing.
 *
 * @param {string} path
 * @param {string} text the TypeScript of the file
 * @returns {{ title: string, fits: (name: string) => boolean }[]} each title with its suites, as
 *   vitest joins them. `fits` returns true for the name of a test that ran under the title
 */
export function titlesOf(path, text) {
  const titles = [];
  const visit = (node, suites) => {
    const made = madeBy(node);
    if (made?.kind === 'test') titles.push(titleOf([...suites, made.title]));
    const inner = made?.kind === 'suite' ? [...suites, made.title] : suites;
    ts.forEachChild(node, (child) => visit(child, inner));
  };
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.Latest), []);
  return titles;
}

function titleOf(steps) {
  const whole = steps.join(' > ');
  const pattern = whole.split(VALUE).map(RegExp.escape).join('[^]*');
  const expression = new RegExp(`^${pattern}$`);
  return { title: whole.replaceAll(VALUE, '…'), fits: (name) => expression.test(name) };
}

/** Returns the suite or test that a call makes; undefined for any other node. */
function madeBy(node) {
  if (!ts.isCallExpression(node) || node.arguments.length < 2) return undefined;
  const { name, isTable } = calledBy(node.expression);
  const kind = SUITES.has(name) ? 'suite' : TESTS.has(name) ? 'test' : undefined;
  // A test or suite is a call with a function. `describe.each(table)` and `it.skipIf(a, b)` have
  // none.
  if (kind === undefined || !node.arguments.slice(1).some(isFunction)) return undefined;
  const title = textOf(node.arguments[0]);
  return { kind, title: isTable ? title.replaceAll(PLACEHOLDER, VALUE) : title };
}

function isFunction(node) {
  return ts.isArrowFunction(node) || ts.isFunctionExpression(node) || ts.isIdentifier(node);
}

/**
 * Returns the `name` of the vitest function that is called in `it`, `it.each(table)` or
 * `requires(…).describe`, and `isTable`, which is true after `each` and `for`. The name is empty
 * for any other expression.
 */
function calledBy(expression, isTable = false) {
  if (ts.isIdentifier(expression)) return { name: expression.text, isTable };
  if (ts.isPropertyAccessExpression(expression)) {
    const name = expression.name.text;
    if (SUITES.has(name) || TESTS.has(name)) return { name, isTable };
    return calledBy(expression.expression, isTable || name === 'each' || name === 'for');
  }
  if (ts.isCallExpression(expression)) return calledBy(expression.expression, isTable);
  if (ts.isTaggedTemplateExpression(expression)) return calledBy(expression.tag, isTable);
  return { name: '', isTable };
}

function textOf(node) {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return VALUE;
  return node.head.text + node.templateSpans.map(({ literal }) => VALUE + literal.text).join('');
}
