/** The lines of a text, the last one whether or not it ends; without a copy of the whole. */
export function* linesOf(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf('\n', start)
    const end = newline < 0 ? text.length : newline
    yield text.slice(start, end)
    start = end + 1
  }
}
