const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether a text can be the id of a resource; one that cannot is the id of nothing. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}
