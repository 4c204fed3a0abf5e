// Calls the JSON API of the service from a page, and shows the outcome.

/**
 * An error response of the API: a message for the user, a code for the page, and a reference for
 * the help desk.
 */
export class Refusal extends Error {
  constructor(message, { code, reference } = {}) {
    super(message);
    this.code = code;
    this.reference = reference;
  }
}

/**
 * Sends JSON to a path of the service, with the session cookie. It names the session for which the
 * page was rendered, so that the service refuses a page of an earlier session.
 *
 * @param options.ifMatch the entity tag of what the page shows, so that the write of an out-of-date
 *   page is refused
 * @returns the JSON of the response
 * @throws Refusal with the detail of the problem document (RFC 9457), or if there is no response
 */
export async function sendJson(method, path, body, { ifMatch } = {}) {
  let response;
  try {
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json',
      prefer: 'return=representation', // a deletion then says what ended (RFC 7240)
    };
    const { session } = document.documentElement.dataset;
    if (session) headers['svc-session'] = session;
    if (ifMatch) headers['if-match'] = ifMatch;
    const request = { method, headers, credentials: 'same-origin', body: JSON.stringify(body) };
    response = await fetch(path, request);
  } catch {
    throw new Refusal('The service cannot be reached. Check your connection and try again.');
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    const reference = response.headers.get('x-fapi-interaction-id');
    const message = answer.detail ?? 'Something went wrong. Please try again.';
    throw new Refusal(message, { code: answer.code, reference });
  }
  return answer;
}

/**
 * Runs an action when a form is submitted. The buttons of the form are disabled until the script
 * has loaded and while the action runs. The status line of the page shows the outcome.
 *
 * @param options.status the status line, which assistive technology reads aloud
 * @param options.waiting the text until `run` is done
 * @param options.run does the work with the fields and the button, and returns the text of success
 * @param options.explain turns what `run` threw into a message
 */
export function onSubmit(form, { status, waiting, run, explain }) {
  const buttons = [...form.querySelectorAll('button')];
  const turnOff = (disabled) => buttons.forEach((button) => (button.disabled = disabled));
  turnOff(false);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const button = event.submitter ?? buttons[0];
    turnOff(true);
    say(status, 'waiting', waiting);
    try {
      say(status, 'done', await run(new FormData(form), button));
    } catch (error) {
      say(status, 'error', messageOf(error, explain));
      if (error instanceof Refusal && error.code === 'unauthenticated') offerLogin(status);
    } finally {
      turnOff(false);
    }
    if (status.dataset.kind === 'error') button.focus(); // the disabled button had lost the focus
  });
}

/** Returns the text of an error, with the reference on a line of its own. */
function messageOf(error, explain) {
  if (!(error instanceof Refusal)) return explain(error);
  return error.reference ? `${error.message}\nReference: ${error.reference}` : error.message;
}

/**
 * Adds a link to the login page, because the session has ended, perhaps in another tab. After the
 * login, the browser returns to this page.
 */
function offerLogin(status) {
  const link = document.createElement('a');
  const back = location.pathname + location.search;
  link.href = `/login?${new URLSearchParams({ redirect_to: back })}`;
  link.textContent = 'Log in again';
  status.append(' ', link);
}

/** Writes a text into the status line of the page, which assistive technology reads aloud. */
export function say(status, kind, message) {
  status.dataset.kind = kind;
  status.textContent = message;
}
