/** Lines of a text, including a last one without a line end; makes no copy of the whole text. */
export function* linesOf(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf('\n', start)
    const end = newline < 0 ? text.length : newline
    yield text.slice(start, end)
    start = end + 1
  }
}
