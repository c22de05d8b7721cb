/** Known name that the user probably meant by `given`: at most two typing errors away, and closer than any other name. */
export function nearest(given: string, known: readonly string[]): string | undefined {
  const ranked = known
    .filter((one) => Math.abs(one.length - given.length) <= mostSlips)
    .map((one) => ({ one, slips: editDistance(given, one) }))
    .filter(({ slips }) => slips <= mostSlips)
    .sort((a, b) => a.slips - b.slips)
  const [first, second] = ranked
  return first && first.slips !== second?.slips ? first.one : undefined
}

const mostSlips = 2
/** Maximum length of compared texts. A longer text is no typing error, and would take long. */
const longest = 100

/** Number of typing errors between two texts: missing, extra, different and swapped letters. */
function editDistance(a: string, b: string): number {
  if (a.length > longest || b.length > longest) return Number.POSITIVE_INFINITY
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, i) => i)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const other = a[i - 1] === b[j - 1] ? 0 : 1
      let least = Math.min(rows[i - 1]![j]! + 1, row[j - 1]! + 1, rows[i - 1]![j - 1]! + other)
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwapped) least = Math.min(least, rows[i - 2]![j - 2]! + 1)
      row.push(least)
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}
