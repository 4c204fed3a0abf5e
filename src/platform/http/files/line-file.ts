import { Readable } from 'node:stream';
import { StreamableFile } from '@nestjs/common';
import type { Request, Response } from 'express';
import { z, type ZodType } from 'zod';
import { csvTable, type CsvColumns } from '#platform/text/csv.js';
import type { MediaTypes } from '#platform/http/routing/route-policy.js';
import { cutOff } from '#platform/http/errors/cut-off.js';

/** The media types in which a list can be sent, by the value of the query parameter `format`. */
export const LIST_FORMATS = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  csv: 'text/csv',
} as const;

/** The name of a format in which a list can be requested. */
export type ListFormat = keyof typeof LIST_FORMATS;

/** The names of the formats, as values of the parameter `format`. */
export const FORMAT_NAMES = Object.keys(LIST_FORMATS) as [ListFormat, ...ListFormat[]];

/**
 * The parameter of a query that selects the format of a list. A link uses it, because it cannot set
 * the header `Accept`.
 */
export const FORMAT_QUERY = {
  format: z
    .enum(FORMAT_NAMES)
    .optional()
    .describe('The format of the response, in place of the header `Accept`.'),
} as const;

/**
 * Describes the response bodies of a list for `/openapi.json`: a page as JSON, or a file of NDJSON
 * or CSV.
 */
export function inEveryFormat(page: ZodType): MediaTypes {
  return {
    [LIST_FORMATS.json]: page,
    [LIST_FORMATS.ndjson]: 'text',
    [LIST_FORMATS.csv]: 'text',
  };
}

/** The rows of a list in batches, which are read one after another while the list is sent. */
export type RowBatches<Row> = AsyncIterable<readonly Row[]>;

/**
 * Returns the format that a client prefers by its header `Accept`; JSON if it accepts none of them.
 * It also adds `Accept` to the header `Vary` of the response.
 */
export function preferredFormat(request: Request, response: Response): ListFormat {
  response.vary('Accept');
  const accepted = request.accepts(Object.values(LIST_FORMATS));
  return FORMAT_NAMES.find((name) => LIST_FORMATS[name] === accepted) ?? 'json';
}

/**
 * Makes a response that sends lines as a file. If reading a line fails, the error is logged and the
 * connection is closed.
 *
 * @param name the name of the file without its extension, which is the format
 */
export function fileOf(
  format: ListFormat,
  name: string,
  lines: AsyncIterable<string>,
): StreamableFile {
  const file = {
    type: LIST_FORMATS[format],
    disposition: `attachment; filename="${name}.${format}"`,
  };
  return new StreamableFile(Readable.from(lines), file).setErrorHandler(cutOff);
}

/** Renders each row of a list as one line of JSON. */
export async function* linesOf<Row>(
  batches: RowBatches<Row>,
  render: (row: Row) => object,
): AsyncGenerator<string> {
  for await (const batch of batches) {
    yield batch.map((row) => `${JSON.stringify(render(row))}\n`).join('');
  }
}

/** Renders a list as CSV: a line with the names of the columns, then one line for each row. */
export async function* tableOf<Row>(
  batches: RowBatches<Row>,
  columns: CsvColumns<Row>,
): AsyncGenerator<string> {
  const { header, lineOf } = csvTable(columns);
  yield header;
  for await (const batch of batches) yield batch.map(lineOf).join('');
}

/** The rules by which a list becomes a file. */
export interface ListFile<Row, Json extends object> {
  /** The name of the file without its extension. */
  readonly name: string;
  /** Renders a row as the JSON that the API shows for it. */
  readonly render: (row: Row) => Json;
  readonly columns: CsvColumns<Json>;
}

/** Makes a response that sends a list as a file of NDJSON or CSV. */
export function fileOfList<Row, Json extends object>(
  format: Exclude<ListFormat, 'json'>,
  batches: RowBatches<Row>,
  { name, render, columns }: ListFile<Row, Json>,
): StreamableFile {
  const lines =
    format === 'csv' ? tableOf(rendered(batches, render), columns) : linesOf(batches, render);
  return fileOf(format, name, lines);
}

async function* rendered<Row, Json>(
  batches: RowBatches<Row>,
  render: (row: Row) => Json,
): AsyncGenerator<readonly Json[]> {
  for await (const batch of batches) yield batch.map(render);
}
