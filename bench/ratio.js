/**
 * The quantiles of Student's t distribution for 97.5 %, for 1, 2, 3 and more degrees of freedom.
 * They give the width of a 95 % interval.
 */
const T = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145,
  2.131, 2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048,
  2.045, 2.042,
];

/**
 * Estimates the ratio after/before from pairs: the geometric mean of the ratios, and its 95 %
 * interval by the t distribution of their logarithms.
 *
 * @param pairs `[before, after]`, two at least, each greater than 0
 */
export function ratioOf(pairs) {
  const logs = pairs.map(([before, after]) => Math.log(after / before));
  const mean = meanOf(logs);
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (logs.length - 1);
  // For more pairs than the table has, its last quantile is used. It is a little too large, so that
  // the interval is a little too wide.
  const t = T[Math.min(logs.length - 1, T.length) - 1];
  const half = t * Math.sqrt(variance / logs.length);
  return { ratio: Math.exp(mean), low: Math.exp(mean - half), high: Math.exp(mean + half) };
}

export function geometricMean(values) {
  return Math.exp(meanOf(values.map(Math.log)));
}

function meanOf(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
