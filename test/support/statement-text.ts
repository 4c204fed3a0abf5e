/**
 * Returns the SQL text of a statement. The service sends either the text itself, or an object with
 * the text and the name of a prepared statement.
 */
export function statementText(statement: unknown): string {
  return typeof statement === 'string' ? statement : (statement as { text: string }).text;
}
