import { CliFailure, STATUS, notLoggedIn } from '../program/failure.js';
import { takeFromAgents } from '../agent/agents.js';
import type { PrivateFolder } from '../files/private-folder.js';
import type { Terminal } from '../terminal/terminal.js';
import { printable } from '../terminal/table.js';
import { clockFailure } from './clock-difference.js';
import type { DpopKey } from './dpop-key.js';
import { askForTool, forgetSilence } from './silence.js';
import type { TokenKind } from './stored-token.js';
import { send, type AnswerHeaders, type PlainAnswer, type PlainRequest } from './transport.js';

/** The body and headers of a request. The body is `json`, `form` or neither. */
export interface RequestContent {
  /** The value that is sent as a JSON body. */
  readonly json?: unknown;
  /** A body of form fields. Undefined and empty fields are left out. */
  readonly form?: Readonly<Record<string, string | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** True if the caller reads the body of the answer in parts. */
  readonly isStreamed?: boolean;
}

/** A demand of the server for a new touch of the security key (RFC 9470 §3). */
export interface StepUpChallenge {
  readonly maxAge: string | undefined;
  readonly acrValues: string | undefined;
}

/** A demand for a new touch that any login meets, for example after the token has expired. */
export const ANY_TOUCH: StepUpChallenge = { maxAge: undefined, acrValues: undefined };

/** The settings and functions that a {@link ServerClient} needs. */
export interface ClientParts {
  /** The origin of the server. */
  readonly server: string;
  /** The folder of the server's secrets. */
  readonly folder: PrivateFolder;
  /**
   * The kind of the access token. If the server does not accept a `token` any more, the SSH key for
   * this server is removed from agents.
   */
  readonly kind?: TokenKind;
  /** True if another program, such as ssh, waits for the command, so that answers must be fast. */
  readonly isForTool?: boolean;
  readonly terminal: Terminal;
  readonly dpopKey: DpopKey;
  /** Returns the access token; undefined before a login. */
  readonly accessToken: () => string | undefined;
  /**
   * Lets the user touch the security key again, and stores the new token. If it is undefined, a
   * demand for a touch is a failure.
   */
  readonly stepUp?: (challenge: StepUpChallenge) => Promise<void>;
  /**
   * True if an expired token also makes the user touch the security key again; otherwise an expired
   * token is a failure.
   */
  readonly renewsExpired?: boolean;
  /**
   * Gets the headers of each answer, which may name a notice about the account and the version of
   * the server. It is undefined if another program reads the output of the command.
   */
  readonly onAnswer?: (headers: AnswerHeaders) => void;
}

/**
 * Sends requests to one server, each with a DPoP proof. After a 429 it waits as long as the server
 * states. It repeats a request if the server sent a nonce for the proof (`use_dpop_nonce`), and
 * after a touch that the server demanded. Every other refusal becomes a CliFailure.
 */
export class ServerClient {
  #nonce: string | undefined;
  #sentToken: string | undefined;

  constructor(private readonly parts: ClientParts) {}

  /**
   * The access token of the last request that had one. If the server demanded a touch, it is the
   * new token, so that a caller can tell from which login an answer came.
   */
  get sentToken(): string | undefined {
    return this.#sentToken;
  }

  /** Sends a GET request and returns the JSON of the answer. */
  get<T>(path: string): Promise<T> {
    return this.json<T>('GET', path);
  }

  /** Sends a JSON body by POST and returns the JSON of the answer. */
  post<T>(path: string, body: unknown = {}): Promise<T> {
    return this.json<T>('POST', path, { json: body });
  }

  /**
   * Sends a request and returns the JSON of the answer; an empty answer becomes an empty object.
   */
  async json<T>(method: string, path: string, content: RequestContent = {}): Promise<T> {
    const answer = await this.request(method, path, content);
    return (answer.text === '' ? {} : documentOf(answer)) as T;
  }

  /**
   * Sends a request with the access token and returns the answer, whose status is 2xx or 304.
   *
   * @throws CliFailure with status 3 without a valid token, 4 if the server refuses, 1 for a fault
   *   of the server
   */
  async request(method: string, path: string, content: RequestContent = {}): Promise<PlainAnswer> {
    const { accessToken, renewsExpired, stepUp } = this.parts;
    if (accessToken() === undefined && renewsExpired) await stepUp?.(ANY_TOUCH);
    if (accessToken() === undefined) throw notLoggedIn();
    const ask = () => this.#send(method, path, content, accessToken);
    const answer = await ask();
    const last = (await this.stepUp(answer)) ? await ask() : answer;
    if (this.parts.kind === 'token' && saysLoginIsOver(last)) takeFromAgents(this.parts.folder);
    return accepted(last);
  }

  /**
   * Lets the user touch the security key again if the server's answer demands it. Returns true if
   * there is a new access token, so that the request can be sent again.
   */
  async stepUp(answer: PlainAnswer): Promise<boolean> {
    const { stepUp } = this.parts;
    const challenge = stepUpChallenge(answer);
    if (!challenge || !stepUp) return false;
    await stepUp(challenge);
    return true;
  }

  /**
   * Sends a form to an OAuth endpoint, with a DPoP proof and without an access token. The answer is
   * returned also if its status is an error.
   */
  form(path: string, fields: NonNullable<RequestContent['form']>): Promise<PlainAnswer> {
    return this.#send('POST', path, { form: fields }, () => undefined);
  }

  async #send(
    method: string,
    path: string,
    content: RequestContent,
    accessToken: () => string | undefined,
  ): Promise<PlainAnswer> {
    const build = () => this.#build(method, path, content, accessToken());
    const answer = await this.#ask(build);
    this.parts.onAnswer?.(answer.headers);
    const nonce = answer.headers.get('dpop-nonce') ?? undefined;
    const isAsked = nonce !== undefined && nonce !== this.#nonce && asksForNonce(answer);
    this.#nonce = nonce ?? this.#nonce;
    return isAsked ? this.#ask(build) : answer;
  }

  async #ask(build: () => Promise<PlainRequest>): Promise<PlainAnswer> {
    const { server, folder, terminal, isForTool } = this.parts;
    const answer = await (isForTool
      ? askForTool(server, folder, (timeout) => send(build, terminal, timeout))
      : send(build, terminal));
    forgetSilence(folder);
    return answer;
  }

  async #build(
    method: string,
    path: string,
    { json, form, headers, isStreamed = false }: RequestContent,
    token: string | undefined,
  ): Promise<PlainRequest> {
    const url = new URL(path, this.parts.server).href;
    this.#sentToken = token ?? this.#sentToken;
    const proof = await this.parts.dpopKey.proof(method, url, { token, nonce: this.#nonce });
    const body = json === undefined ? form && encodeForm(form) : JSON.stringify(json);
    const type = json === undefined ? 'application/x-www-form-urlencoded' : 'application/json';
    return {
      method,
      url,
      isStreamed,
      headers: {
        accept: 'application/json',
        dpop: proof,
        ...(token === undefined ? {} : { authorization: `DPoP ${token}` }),
        ...(body === undefined ? {} : { 'content-type': type }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    };
  }
}

/** The advice about a refusal that has no text of its own. */
const ASK = 'Ask an admin, or run: svc doctor';

/**
 * The advice after the text of a refusal, by its HTTP status. For any other status, the text itself
 * says what to do.
 */
const REMEDIES: Readonly<Record<number, string>> = { 403: ASK, 404: ASK, 429: 'Try again later.' };

/**
 * Returns the JSON document in an answer.
 * @throws CliFailure for any other text, such as a page that a proxy shows
 */
export function documentOf({ text }: PlainAnswer): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) throw new SyntaxError('no object');
    return value;
  } catch (cause) {
    throw notJson(cause);
  }
}

/**
 * Returns the failure for an answer that is no JSON document, such as a page that a proxy shows.
 */
export function notJson(cause?: unknown): CliFailure {
  const message = 'The answer of the server is not JSON.';
  const whatToDo = 'Check the URL of the server: svc doctor';
  return new CliFailure(message, whatToDo, STATUS.failed, { cause });
}

/**
 * Returns the answer if the server accepted the request (2xx or 304).
 * @throws CliFailure for any other answer
 */
export function accepted(answer: PlainAnswer): PlainAnswer {
  const { status } = answer;
  if ((status >= 200 && status < 300) || status === 304) return answer;
  if (status >= 300 && status < 400) {
    // The API redirects nothing, so it is a proxy or the network that answers.
    const message = `Another page answers in place of the server (${status}).`;
    throw new CliFailure(message, 'Check the network of this machine: svc doctor');
  }
  const wrongClock = clockFailure(answer.headers, codeOf(answer));
  if (wrongClock) throw wrongClock;
  const detail = detailOf(answer);
  if (status >= 500) {
    throw new CliFailure(detail ?? `The server failed (${status}).`, 'Try again in a minute.');
  }
  if (status === 401) throw refusal401(answer, detail);
  throw new ServerRefusal(
    detail ?? `The server refused (${status}).`,
    detail === undefined ? ASK : (REMEDIES[status] ?? ''),
    status,
    errorDocument(answer.text),
  );
}

/**
 * The failure if the server refuses a request. It has the code of the server's problem document or
 * OAuth error.
 */
export class ServerRefusal extends CliFailure {
  constructor(
    message: string,
    whatToDo: string,
    readonly httpStatus: number,
    /**
     * The members of the problem document (RFC 9457) or of the OAuth error; none if the answer has
     * neither.
     */
    readonly problem: Readonly<Record<string, unknown>>,
  ) {
    super(message, whatToDo, STATUS.refused);
  }

  get code(): string | undefined {
    return codeIn(this.problem);
  }
}

/** The failure if the server demands a new touch of the security key (RFC 9470). */
export class TouchNeeded extends CliFailure {
  constructor(
    message: string,
    readonly challenge: StepUpChallenge,
  ) {
    super(message, 'Run: svc login', STATUS.notLoggedIn);
  }
}

/** The failure if the server refuses the proof of this machine (RFC 9449), not the login itself. */
export class ProofRefused extends CliFailure {
  constructor(detail = 'no reason was given.') {
    const message = `The server refused the proof of this machine: ${detail}`;
    super(message, 'Run: svc login, and if it stays: svc doctor', STATUS.notLoggedIn);
  }
}

function refusal401(answer: PlainAnswer, detail: string | undefined): CliFailure {
  if (['invalid_dpop_proof', 'use_dpop_nonce'].includes(codeOf(answer) ?? '')) {
    return new ProofRefused(detail);
  }
  const challenge = stepUpChallenge(answer);
  if (challenge) {
    return new TouchNeeded(detail ?? 'This needs a fresh touch of your security key.', challenge);
  }
  return notLoggedIn(detail === undefined ? undefined : `You are not logged in: ${detail}`);
}

/** Returns true if the server does not accept the login any more. */
function saysLoginIsOver(answer: PlainAnswer): boolean {
  if (answer.status !== 401) return false;
  const failure = refusal401(answer, undefined);
  return !(failure instanceof TouchNeeded) && !(failure instanceof ProofRefused);
}

/** Returns the demand for a new touch that an answer contains; undefined for any other answer. */
function stepUpChallenge({ status, headers }: PlainAnswer): StepUpChallenge | undefined {
  const challenge = headers.get('www-authenticate') ?? '';
  if (status !== 401 || !challenge.includes('insufficient_user_authentication')) return undefined;
  const parameter = (name: string) => new RegExp(`\\b${name}="?([^",]+)"?`).exec(challenge)?.[1];
  return { maxAge: parameter('max_age'), acrValues: parameter('acr_values') };
}

function asksForNonce({ status, headers, text }: PlainAnswer): boolean {
  if (status !== 400 && status !== 401) return false;
  const challenge = headers.get('www-authenticate') ?? '';
  return challenge.includes('use_dpop_nonce') || text.includes('use_dpop_nonce');
}

/**
 * Returns the text of a problem document (RFC 9457) or of an OAuth error; undefined if there is
 * none. Characters that could control the terminal are left out.
 */
export function detailOf({ text }: PlainAnswer): string | undefined {
  const { detail, error_description: description, title } = errorDocument(text);
  const found = [detail, description, title].find((value) => typeof value === 'string');
  return found === undefined ? undefined : printable(found);
}

/**
 * Returns the code of a problem document, or the `error` of OAuth; undefined if the answer has
 * none.
 */
export function codeOf({ text }: PlainAnswer): string | undefined {
  return codeIn(errorDocument(text));
}

function codeIn({ code, error }: Readonly<Record<string, unknown>>): string | undefined {
  const found = code ?? error;
  return typeof found === 'string' ? found : undefined;
}

function errorDocument(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text)) as Record<string, unknown>;
  } catch {
    return {};
  }
}

function encodeForm(fields: NonNullable<RequestContent['form']>): string {
  const known = Object.entries(fields).filter((field): field is [string, string] => !!field[1]);
  return new URLSearchParams(known).toString();
}
