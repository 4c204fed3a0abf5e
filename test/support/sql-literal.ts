/**
 * Writes a value as a literal of SQL, for EXECUTE of a prepared statement. The elements of an array
 * must need no quotes.
 */
export function literal(value: unknown): string {
  if (value === null || value === undefined) return 'NULL';
  if (Array.isArray(value)) return `'{${value.join(',')}}'`;
  if (Buffer.isBuffer(value)) return `'\\x${value.toString('hex')}'`;
  return `'${(value as string | number).toString().replaceAll("'", "''")}'`;
}
