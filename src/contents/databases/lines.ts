/** Yields the lines of a text without copying the whole text. The last line need not end with a line break. */
export function* linesOf(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf('\n', start)
    const end = newline < 0 ? text.length : newline
    yield text.slice(start, end)
    start = end + 1
  }
}
