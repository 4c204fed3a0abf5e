// Groups the events of a page by the days of the user's time zone. The server has grouped them by
// the days of UTC, which stay without this script.

import { LANGUAGE, localDay } from './page.js';

for (const list of document.querySelectorAll('[data-days]')) group(list);

function group(list) {
  const [pattern] = list.children;
  if (!pattern) return;
  const days = new Map();
  for (const line of list.querySelectorAll('li[data-event]')) {
    const name = localDay(line.querySelector('time').dateTime);
    days.set(name, [...(days.get(name) ?? []), line]);
  }
  list.replaceChildren(...[...days].map(([name, lines]) => dayOf(pattern, name, lines)));
}

/**
 * Returns an element like `pattern` for another day, with the name of the day and the lines of its
 * events.
 */
function dayOf(pattern, name, lines) {
  const day = pattern.cloneNode();
  const heading = pattern.querySelector('.day').cloneNode();
  heading.textContent = name;
  heading.lang = LANGUAGE;
  const items = pattern.querySelector('ul').cloneNode();
  items.append(...lines);
  day.append(heading, items);
  return day;
}
