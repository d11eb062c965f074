// Every chart of the page comes alive; where the browser is too old for that, its still picture stays.
import { unpack } from './unpack.js';
import { Timeline } from './timeline.js';

const timelines = [];

async function start() {
  if (typeof DecompressionStream !== 'function') return;
  for (const figure of document.querySelectorAll('figure.chart')) {
    const told = JSON.parse(figure.querySelector('script').textContent);
    timelines.push(new Timeline(figure, told, await unpack(told)));
  }
}

function redraw() { for (const one of timelines) one.rebuild(); }

// A chart that the reader has moved is printed as it stands, in the colours of paper and as wide as a sheet.
addEventListener('beforeprint', () => { document.documentElement.classList.add('printing'); redraw(); });
addEventListener('afterprint', () => { document.documentElement.classList.remove('printing'); redraw(); });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
start();
