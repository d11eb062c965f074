// One series in the list: its cells, its sparkline, and what live rows change in them.
import { hashes, seriesKey } from './api.js';
import { h, say } from './dom.js';
import { count, eventWords, fullTime, isLow, number, percent, seriesName, when } from './format.js';

const WIDTH = 132;
const HEIGHT = 34;

/** Draw labels into a canvas, the last one with a dot. */
function drawSparkline(canvas, labels, ink) {
  const ratio = Math.min(devicePixelRatio || 1, 3);
  const pen = canvas.getContext('2d');
  canvas.width = WIDTH * ratio; // which also clears it
  canvas.height = HEIGHT * ratio;
  const known = labels.filter((label) => label !== null);
  if (!known.length) return;
  pen.scale(ratio, ratio);
  const low = Math.min(...known);
  const high = Math.max(...known);
  const step = (WIDTH - 6) / Math.max(labels.length - 1, 1);
  const y = (label) => (high > low ? 3 + ((high - label) / (high - low)) * (HEIGHT - 6) : HEIGHT / 2);
  pen.strokeStyle = pen.fillStyle = ink;
  pen.lineWidth = 1.25;
  pen.lineJoin = 'round';
  pen.beginPath();
  labels.forEach((label, place) => {
    if (label !== null) pen[place && labels[place - 1] !== null ? 'lineTo' : 'moveTo'](2 + place * step, y(label));
  });
  pen.stroke();
  pen.beginPath();
  pen.arc(2 + labels.findLastIndex((label) => label !== null) * step, y(known.at(-1)), 2, 0, 7);
  pen.fill();
}

const cell = (name, ...children) => h('div', { role: 'cell', class: name }, ...children);

/** A row of the list. `summary` is the service's; live rows are taken in between two of them. */
export class Row {
  constructor(stream, summary) {
    this.key = seriesKey(summary.series);
    this.visible = false;
    this.stale = true;
    this.canvas = h('canvas', { class: 'spark', 'aria-hidden': 'true' });
    this.link = h('a', { href: hashes.series(stream.name, this.key) }, seriesName(summary.series));
    this.cells = {
      y: cell('value'), prediction: cell('value soft'), skill: cell('skill'), coverage: cell('coverage'),
      alarms: cell('alarms'), at: cell('at'),
    };
    // On a phone there is no head of the table above these.
    const names = { y: 'Last', prediction: 'Predicted', skill: 'Skill', coverage: 'Coverage', alarms: 'Alarms', at: 'Row' };
    for (const [name, element] of Object.entries(this.cells)) element.dataset.label = names[name];
    this.element = h('div', { role: 'row', class: 'line' },
      cell('name', this.link), cell('trend', this.canvas), ...Object.values(this.cells));
    this.element.row = this;
    this.level = stream.level;
    this.take(summary);
  }

  /** What the service says now. */
  take(summary) {
    this.stale = true;
    if (summary.rows < this.summary?.rows) {
      // Live rows overtook this answer: its scores are news, its last values are not.
      Object.assign(this.summary, { score: summary.score, alarms: summary.alarms, last_event: summary.last_event });
      return;
    }
    this.summary = summary;
    this.spark = [...(summary.spark ?? [])];
    // The last row may still wait for its label; one that has it does not come again.
    this.labelled = summary.rows - 2;
  }

  /** A live row: a prediction, or the label of one. */
  live(row) {
    const { summary } = this;
    if (row.row + 1 >= summary.rows) {
      summary.rows = row.row + 1;
      for (const name of ['at', 'prediction', 'lower', 'upper']) if (row[name] !== undefined) summary[name] = row[name];
    }
    if (typeof row.y === 'number' && row.row > this.labelled) {
      this.labelled = row.row;
      summary.y = row.y;
      this.spark.push(row.y);
      if (this.spark.length > 60) this.spark.shift();
    }
    this.stale = true;
  }

  alarm(event) {
    this.summary.alarms += 1;
    this.summary.last_event = event;
    this.stale = true;
  }

  /** Bring the cells up to date, where someone can see them. */
  paint(ink) {
    if (!this.visible || !this.stale) return;
    this.stale = false;
    const { summary, cells } = this;
    const score = summary.score ?? {};
    say(cells.y, number(summary.y, score.rmse));
    say(cells.prediction, number(summary.prediction, score.rmse));
    cells.prediction.title = typeof summary.lower === 'number'
      ? `${percent(this.level)} interval: ${number(summary.lower, score.rmse)} to ${number(summary.upper, score.rmse)}` : '';
    say(cells.skill, percent(score.skill, { signed: true }));
    cells.skill.classList.toggle('bad', score.skill < 0);
    cells.skill.classList.toggle('good', score.skill > 0.05);
    say(cells.coverage, percent(score.coverage));
    cells.coverage.classList.toggle('bad', isLow(score.coverage, this.level));
    say(cells.alarms, summary.alarms ? count(summary.alarms) : 'none');
    cells.alarms.classList.toggle('some', summary.alarms > 0);
    cells.alarms.title = summary.last_event
      ? `Last: ${eventWords(summary.last_event)}, ${when(summary.last_event.at)}` : '';
    say(cells.at, when(summary.at));
    cells.at.title = `Row ${count(summary.rows - 1)}, ${fullTime(summary.at)}`;
    drawSparkline(this.canvas, this.spark, ink);
  }
}
