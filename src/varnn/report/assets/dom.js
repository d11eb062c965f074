// Elements are made here alone, of text and never of markup: names of series come from whoever sends data.

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
 * Give a function that asks for `paint` in the next frame, once however often it is called, and `pause`
 * milliseconds after the last time. Who prefers reduced motion sees at most one change a second.
 */
export function batched(paint, pause = 0) {
  let waiting = false;
  let last = -Infinity;
  return () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => requestAnimationFrame((now) => {
      waiting = false;
      last = now;
      paint();
    }), last + (slow.matches ? 1000 : pause) - performance.now());
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
