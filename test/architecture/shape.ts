import ts from 'typescript';
import type { SourceFile } from './import-graph.js';

/** A class with a decorator of Nest, so that Nest creates its instances. */
export interface BuiltClass {
  readonly path: string;
  readonly name: string;
  /** The name of its decorator: `Injectable`, `Controller`, `Module` … */
  readonly decorator: string;
  readonly dependencies: number;
  /** The number of lines from the name to the closing brace. */
  readonly lines: number;
}

/** A function: its `place` (path and line), and its length in lines. */
export interface LongFunction {
  readonly place: string;
  readonly lines: number;
}

/** Parses a source file of the project. */
function parsed({ path, text }: SourceFile): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
}

/** Yields every node of a syntax tree, parents first. */
function* nodesOf(node: ts.Node): Generator<ts.Node> {
  yield node;
  const children: ts.Node[] = [];
  ts.forEachChild(node, (child) => void children.push(child));
  for (const child of children) yield* nodesOf(child);
}

/**
 * Returns the decorated classes of a file. `dependencies` is the number of parameters of the
 * constructor.
 */
export function builtClasses(file: SourceFile): BuiltClass[] {
  if (!/@\w+\(/.test(file.text)) return []; // spares the parser for most files
  return [...nodesOf(parsed(file))].flatMap((node) => {
    if (!ts.isClassDeclaration(node) || !node.name) return [];
    const [decorator] = ts.getDecorators(node) ?? [];
    const call = decorator?.expression;
    if (!call || !ts.isCallExpression(call)) return [];
    const dependencies = node.members.find(ts.isConstructorDeclaration)?.parameters.length ?? 0;
    const source = node.getSourceFile();
    const lineAt = (position: number) => source.getLineAndCharacterOfPosition(position).line;
    const lines = lineAt(node.end) - lineAt(node.name.getStart()) + 1;
    const { text: name } = node.name;
    return [{ path: file.path, name, decorator: call.expression.getText(), dependencies, lines }];
  });
}

/** Returns the functions of a file that have more lines than a limit. */
export function longFunctions(file: SourceFile, limit: number): LongFunction[] {
  if (file.text.split('\n').length <= limit) return [];
  const source = parsed(file);
  const lineAt = (position: number) => source.getLineAndCharacterOfPosition(position).line;
  return [...nodesOf(source)].flatMap((node) => {
    if (!ts.isFunctionLike(node) || !('body' in node) || !node.body) return [];
    const start = lineAt(node.getStart(source));
    const lines = lineAt(node.end) - start + 1;
    return lines > limit ? [{ place: `${file.path}:${start + 1}`, lines }] : [];
  });
}

/** Returns the names of the classes, interfaces and types that a file exports. */
export function exportedTypes(file: SourceFile): string[] {
  return parsed(file)
    .statements.filter(
      (node) =>
        ts.isClassDeclaration(node) ||
        ts.isInterfaceDeclaration(node) ||
        ts.isTypeAliasDeclaration(node),
    )
    .filter(({ modifiers }) => modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword))
    .flatMap(({ name }) => (name ? [name.text] : []));
}
