// Hands on a chart: drag, shift-drag, wheel, pinch, keys. Each ends in `move(min, max)`.

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/**
 * Make a uPlot chart and what surrounds it obey. `host` has: `range()` -> [min, max] now, `bounds()` -> [min, max] of
 * the data, `pinned()` whether the right end is followed, `move(min, max)`, `reset()`.
 */
export function gestures(frame, host) {
  const span = () => { const [min, max] = host.range(); return max - min; };

  /** Shift by a share of the width, as far as there is data. */
  function pan(share) {
    const [min, max] = host.range();
    const [low, high] = host.bounds();
    const by = clamp(share * span(), low - min, high - max);
    if (Math.abs(by) < span() * 1e-6) return false;
    host.move(min + by, max + by);
    return true;
  }

  /** Zoom by a factor around a point, given as a share of the width. */
  function zoom(factor, around = host.pinned() ? 1 : 0.5) {
    const [min, max] = host.range();
    const [low, high] = host.bounds();
    const width = Math.min(span() * factor, high - low);
    if (!(width > 0)) return;
    const from = clamp(min + (span() - width) * around, low, high - width);
    host.move(from, from + width);
  }

  const keys = {
    '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), _: () => zoom(2),
    ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2),
    Home: () => pan(-1e9), End: () => pan(1e9), 0: host.reset, Escape: host.reset,
  };
  frame.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== frame || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });

  /** What uPlot binds: with shift a drag pans, and a double click goes back to the range that was chosen. */
  const bind = {
    mousedown: (chart, target, handler) => (event) => {
      frame.focus({ preventScroll: true });
      if (!event.shiftKey || event.button !== 0) return handler(event);
      let last = event.clientX;
      const drag = (moved) => {
        pan(-(moved.clientX - last) / chart.over.clientWidth);
        last = moved.clientX;
      };
      addEventListener('mousemove', drag);
      addEventListener('mouseup', () => removeEventListener('mousemove', drag), { once: true });
      return null;
    },
    dblclick: () => () => { host.reset(); return null; },
  };

  function attach(chart) {
    const { over } = chart;
    over.addEventListener('wheel', (event) => {
      const wide = over.clientWidth;
      if (event.ctrlKey) { // also what a pinch on a touchpad says
        event.preventDefault();
        zoom(Math.exp(event.deltaY / 200), clamp(event.offsetX / wide, 0, 1));
        return;
      }
      const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      // A page that is only scrolled past must scroll: up and down pans in a chart that was touched first.
      if (!sideways && document.activeElement !== frame) return;
      const by = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.deltaY;
      if (pan(by * (event.deltaMode === 1 ? 16 : 1) / wide)) event.preventDefault();
    }, { passive: false });

    const fingers = new Map();
    const spread = () => {
      const [one, two] = [...fingers.values()];
      return two === undefined ? null : { middle: (one + two) / 2, apart: Math.max(Math.abs(one - two), 10) };
    };
    over.addEventListener('pointerdown', (event) => {
      if (event.pointerType !== 'mouse') fingers.set(event.pointerId, event.clientX);
    });
    over.addEventListener('pointermove', (event) => {
      const before = fingers.get(event.pointerId);
      if (before === undefined) return;
      const was = spread();
      fingers.set(event.pointerId, event.clientX);
      const wide = over.clientWidth;
      if (fingers.size === 1) {
        pan((before - event.clientX) / wide);
      } else if (was) {
        const now = spread();
        const left = over.getBoundingClientRect().left;
        zoom(was.apart / now.apart, clamp((now.middle - left) / wide, 0, 1));
        pan((was.middle - now.middle) / wide);
      }
    });
    for (const end of ['pointerup', 'pointercancel']) {
      over.addEventListener(end, (event) => fingers.delete(event.pointerId));
    }
  }

  return { bind, attach, pan, zoom };
}
