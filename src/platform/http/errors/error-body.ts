/** An error as its client reads it. */
export interface ErrorBody {
  readonly type: string;
  readonly content: string;
}
