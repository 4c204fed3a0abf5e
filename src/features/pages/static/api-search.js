// The script of the index of the API. It shows the routes that have every word of the search. A
// word can be in the path, the summary, the name or the group of a route, or in the names of its
// parameters.

const form = document.querySelector('[data-api-search]');
const field = form.querySelector('input');
const status = form.querySelector('[role="status"]');

const groups = [...document.querySelectorAll('[data-api-group]')].map((section) => {
  const details = section.querySelector('details');
  const routes = [...section.querySelectorAll('[data-words]')].map((route) => ({
    route,
    text: `${section.querySelector('h2').textContent} ${route.textContent} ${route.dataset.words}`,
  }));
  return { section, details, routes };
});

/** Shows the routes that have every word, and says how many there are. */
function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const { section, details, routes } of groups) {
    let shown = 0;
    for (const { route, text } of routes) {
      route.hidden = !words.every((word) => text.toLowerCase().includes(word));
      if (!route.hidden) shown += 1;
    }
    section.hidden = shown === 0;
    details.open = words.length > 0;
    found += shown;
  }
  status.textContent = words.length === 0 ? '' : found === 1 ? '1 route' : `${found} routes`;
}

field.addEventListener('input', search);
form.addEventListener('submit', (event) => event.preventDefault());
form.hidden = false;
search(); // the browser keeps the text of the field when it goes back to the page
