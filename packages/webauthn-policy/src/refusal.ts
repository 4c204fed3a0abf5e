/** The error for data that the policy or a parser refuses. Its message is for the client. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
}
