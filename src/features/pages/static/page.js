// The script of every page. It shows times in the user's language and time zone, and reloads a page
// that the browser restored after "Back".

// Times are formatted in the first language of the browser that `Intl` supports. Some browsers list
// a text that is no language tag, such as `en-US@posix`. Such texts are left out, because
// `Intl.DateTimeFormat` would throw an error.
const LANGUAGES = navigator.languages.filter(isTag);
const format = (options) => new Intl.DateTimeFormat(LANGUAGES, options);
const TIME = format({ dateStyle: 'medium', timeStyle: 'long' });
const TIME_OF_DAY = format({ timeStyle: 'medium' });
const DAY = format({ dateStyle: 'full' });
const ZONE = format({ hour: 'numeric', timeZoneName: 'short' });

function isTag(language) {
  try {
    return Intl.getCanonicalLocales(language).length > 0;
  } catch {
    return false;
  }
}

/** The language in which the times of the page are written. */
export const { locale: LANGUAGE } = TIME.resolvedOptions();

/** Formats a time (RFC 3339) in the user's language and time zone, with seconds and the zone. */
export function localTime(timestamp) {
  return TIME.format(new Date(timestamp));
}

/**
 * Returns the name of the day of a time in the user's time zone, with the zone. A day on which the
 * clocks change has two names, so that each time of day below a name is unambiguous.
 */
export function localDay(timestamp) {
  const date = new Date(timestamp);
  const zone = ZONE.formatToParts(date).find(({ type }) => type === 'timeZoneName');
  return `${DAY.format(date)}, ${zone.value}`;
}

/**
 * Writes the text of a `<time>` in the user's language and time zone. With `data-clock` it is the
 * time of the day alone. The text in UTC becomes the title.
 */
export function showLocally(time) {
  const isClock = time.dataset.clock !== undefined;
  time.title = isClock ? time.dateTime : time.textContent;
  time.textContent = (isClock ? TIME_OF_DAY : TIME).format(new Date(time.dateTime));
  time.lang = LANGUAGE;
}

for (const time of document.querySelectorAll('time[datetime]')) showLocally(time);

// On a narrow screen the tabs are one row that scrolls sideways. The row is scrolled here so that
// the tab of this page is visible.
const tab = document.querySelector('.tabs [aria-current]');
tab?.closest('ul').scrollTo({ left: tab.offsetLeft - 48, behavior: 'instant' });

// A page that the browser restored from its back/forward cache may show a user who has logged out,
// so it is reloaded.
addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload();
});
