/** Text from other programs on one line of a terminal, without control characters and without text that looks like a token. */
export function plain(text: string): string {
  return visible(text.replace(/[\w.-]+/g, withoutToken)).trim()
}

/** Replaces a JSON Web Token in a word, such as `eyJh.eyJz.c2ln`. It begins with `eyJ` and has parts separated by dots. */
function withoutToken(word: string): string {
  const parts = word.split('.')
  const first = parts.findIndex((part, at) => /eyJ./.test(part) && parts[at + 1])
  if (first < 0) return word
  const before = parts[first]!.slice(0, parts[first]!.indexOf('eyJ'))
  return [...parts.slice(0, first), `${before}[token]`].join('.')
}

/** Replaces control characters of terminals and of text direction, so the text is one line. Does not remove tokens. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ')
}

/** Escapes control characters except line breaks, characters of text direction and characters without width, as JSON does. */
export function escapeInvisible(text: string): string {
  const escapes = (char: string) =>
    char.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return text.replace(/(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/gu, escapes)
}

/** JSON for programs that is safe on a terminal. The value stays the same. */
export function jsonText(value: unknown, indent?: number): string {
  return escapeInvisible(JSON.stringify(value, undefined, indent))
}

/** Cells of one row of a table. A missing cell is empty. */
export type Row = readonly (string | undefined)[]

/** Aligns columns with spaces. The last column gets no trailing spaces. */
export function table(rows: readonly Row[]): string[] {
  const cells = rows.map((row) => row.map((cell) => plain(cell ?? '')))
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  return cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** Size in the largest unit in which the number is at least one. */
export function size(bytes: unknown): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']
  let value = Number(bytes)
  let unit = 0
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}
