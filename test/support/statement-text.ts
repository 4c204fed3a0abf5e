/**
 * Returns the text of a statement, which the service passes to its connection as a text, or with
 * the name of a prepared statement.
 */
export function statementText(statement: unknown): string {
  return typeof statement === 'string' ? statement : (statement as { text: string }).text;
}
