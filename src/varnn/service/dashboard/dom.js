// Elements are made here and nowhere else, from text and never from markup: names of series and models come
// from whoever sends data.

/**
 * Make an element: h('a', {href: '#/', class: 'tag', onclick: f}, 'text', child).
 * Children that are null or false are left out.
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Put text where other text was; the same text costs no layout. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const slow = matchMedia('(prefers-reduced-motion: reduce)');

/**
 * Give a function that asks for `paint` in the next frame, once however often it is called. Who prefers
 * reduced motion sees at most one change a second.
 */
export function batched(paint) {
  let waiting = false;
  const later = () => requestAnimationFrame(() => { waiting = false; paint(); });
  return () => {
    if (waiting) return;
    waiting = true;
    if (slow.matches) setTimeout(later, 1000); else later();
  };
}

/** A function that waits until it was not called for `milliseconds`. */
export function settled(action, milliseconds) {
  let timer = 0;
  const ask = (...given) => { clearTimeout(timer); timer = setTimeout(() => action(...given), milliseconds); };
  ask.cancel = () => clearTimeout(timer);
  return ask;
}

/** A message in the place of a page or a part of it, with a way on where there is one. */
export function notice(text, { bad = false, retry = null } = {}) {
  return h('div', { class: bad ? 'notice bad' : 'notice', role: bad ? 'alert' : 'status' },
    h('p', {}, text), retry && h('button', { type: 'button', onclick: retry }, 'Try again'));
}

/** Ask in a dialog; gives true where the answer is yes. */
export function confirmed(title, text, yes) {
  const dialog = document.getElementById('confirm');
  say(document.getElementById('confirm-title'), title);
  say(document.getElementById('confirm-text'), text);
  say(document.getElementById('confirm-yes'), yes);
  dialog.returnValue = 'no';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}
