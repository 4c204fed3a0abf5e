// What every page does beyond its HTML: times in the reader's own zone, and no stale page after "Back".

const LOCAL_TIME = new Intl.DateTimeFormat(document.documentElement.lang, {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: 'numeric',
  minute: '2-digit',
  timeZoneName: 'short',
});

/** Writes a time, given as RFC 3339, as the reader's clock shows it. */
export function localTime(timestamp) {
  return LOCAL_TIME.format(new Date(timestamp));
}

for (const time of document.querySelectorAll('time[datetime]')) {
  time.title = time.textContent;
  time.textContent = localTime(time.dateTime);
}

// A page kept in the browser's memory may show who has logged out since: ask for it anew.
addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload();
});
