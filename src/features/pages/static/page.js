// The script of every page. It shows times in the user's time zone, and reloads a page that the
// browser restored after "Back".

const LOCAL_TIME = new Intl.DateTimeFormat(document.documentElement.lang, {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: 'numeric',
  minute: '2-digit',
  timeZoneName: 'short',
});

/** Formats a time (RFC 3339) in the user's time zone. */
export function localTime(timestamp) {
  return LOCAL_TIME.format(new Date(timestamp));
}

for (const time of document.querySelectorAll('time[datetime]')) {
  time.title = time.textContent;
  time.textContent = localTime(time.dateTime);
}

// On a narrow screen the tabs are one row that scrolls sideways. It is scrolled so that the tab of
// this page is visible.
const tab = document.querySelector('.tabs [aria-current]');
tab?.closest('ul').scrollTo({ left: tab.offsetLeft - 48, behavior: 'instant' });

// A page that the browser restored from its back/forward cache may show a user who has logged out,
// so it is reloaded.
addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload();
});
