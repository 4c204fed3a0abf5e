/** The fields of a form as they came; a field that came several times is a list. */
export type FormFields = Readonly<Record<string, string | readonly string[]>> | undefined;

/** Writes the fields of a form as a query. */
export function queryOf(fields: FormFields): URLSearchParams {
  return new URLSearchParams(
    Object.entries(fields ?? {}).flatMap(([name, values]) =>
      [values].flat().map((value): [string, string] => [name, value]),
    ),
  );
}
