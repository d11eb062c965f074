// Numbers in the viewer's language.

export const NONE = '–';
const formats = new Map();

// An Intl format is dear to make, cheap to use.
export function decimalFormat(digits, extra = '') {
  const key = digits + extra;
  if (!formats.has(key)) {
    formats.set(key, new Intl.NumberFormat(undefined, extra === 'e'
      ? { notation: 'scientific', maximumSignificantDigits: digits }
      : { minimumFractionDigits: digits, maximumFractionDigits: digits }));
  }
  return formats.get(key);
}

// A hyphen is too short to be seen before a figure.
export const minus = (text) => text.replace('-', '−');
export const known = (value) => typeof value === 'number' && Number.isFinite(value);

/** A value to about a hundredth of its usual error `scale`, if known, or to four digits. */
export function number(value, scale = null) {
  if (!known(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 1e9 || (size > 0 && size < 1e-4 && !(scale > size))) return minus(decimalFormat(4, 'e').format(value));
  const digits = scale > 0 ? 1 - Math.floor(Math.log10(scale / 3)) : 3 - Math.floor(Math.log10(Math.max(size, 1e-4)));
  return minus(decimalFormat(Math.min(Math.max(digits, 0), 6)).format(value));
}

export const count = (value) => (known(value) ? decimalFormat(0).format(value) : NONE);

/** Labels of an axis, with the decimals of its steps and one suffix for large values. */
export function axisNumbers(splits, step) {
  const largest = Math.max(...splits.map((one) => Math.abs(one ?? 0)));
  if (largest >= 1e12 || (largest > 0 && largest < 1e-4)) {
    return splits.map((one) => (one === null ? null : minus(decimalFormat(3, 'e').format(one))));
  }
  const [unit, suffix] = largest >= 1e9 ? [1e9, 'G'] : largest >= 1e6 ? [1e6, 'M'] : largest >= 1e5 ? [1e3, 'k'] : [1, ''];
  let digits = 0; // those of the step: 2.5 has one
  while (digits < 6 && Math.abs((step / unit) * 10 ** digits % 1) > 1e-6) digits += 1;
  return splits.map((one) => (one === null ? null : minus(decimalFormat(digits).format(one / unit)) + suffix));
}
