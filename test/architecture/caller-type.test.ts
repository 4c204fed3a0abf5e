import 'reflect-metadata';
import { Reflector } from '@nestjs/core';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import type { AuthRule } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { sourceFiles, type SourceFile } from './import-graph.js';

/**
 * The type that the parameter `@Caller()` must have, by the session that the route demands. The
 * compiler cannot check it, because legacy parameter decorators cannot state a type.
 */
const CALLER_TYPE: Readonly<Record<AuthRule['session'], string | undefined>> = {
  none: undefined,
  optional: 'LiveSession | undefined',
  any: 'LiveSession',
  verified: 'VerifiedSession',
  provisioner: 'Provisioner',
  client: 'ClientItself',
  program: 'Program',
};

interface DeclaredCaller {
  readonly controller: string;
  readonly handler: string;
  /** The type annotation of the parameter with `@Caller()`, as it is written. */
  readonly type: string;
}

const reflector = new Reflector();

/**
 * Returns the methods of a file's classes that have a parameter `@Caller()`, each with its type
 * annotation.
 */
function declaredCallers({ path, text }: SourceFile): DeclaredCaller[] {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const classes = source.statements.filter(ts.isClassDeclaration);
  return classes.flatMap(({ name, members }) =>
    members.filter(ts.isMethodDeclaration).flatMap((method) =>
      method.parameters
        .filter((parameter) =>
          (ts.getDecorators(parameter) ?? []).some((each) => each.getText() === '@Caller()'),
        )
        .map(({ type }) => ({
          controller: name?.text ?? '',
          handler: method.name.getText(),
          type: type?.getText() ?? '',
        })),
    ),
  );
}

/**
 * Returns the access rule of a handler, or else the rule of its controller. Returns undefined if
 * neither has one.
 */
function authOf(controller: abstract new () => object, handler: string): AuthRule | undefined {
  const method: unknown = Reflect.get(controller.prototype as object, handler);
  const own = reflector.get(Route, method as () => void)?.auth;
  return own ?? reflector.get(Route, controller as new () => object)?.auth;
}

describe('the type of @Caller()', () => {
  it('is the one that the auth rule of the route decides', async () => {
    const controllers = sourceFiles('src/features').filter(({ path }) =>
      path.endsWith('.controller.ts'),
    );
    const wrong: string[] = [];
    let seen = 0;
    for (const file of controllers) {
      const callers = declaredCallers(file);
      if (callers.length === 0) continue;
      const exports: Record<string, unknown> = await import(`../../${file.path}`);
      for (const { controller, handler, type } of callers) {
        const auth = authOf(exports[controller] as abstract new () => object, handler);
        seen += 1;
        const expected = auth && CALLER_TYPE[auth.session];
        if (type !== expected) wrong.push(`${controller}.${handler}: ${type}, not ${expected}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(seen).toBeGreaterThan(30);
    const text = 'class C { list(@Caller() session: VerifiedSession) {} }';
    expect(declaredCallers({ path: 'x.ts', text, imports: [] })).toEqual([
      { controller: 'C', handler: 'list', type: 'VerifiedSession' },
    ]);
  });
});
