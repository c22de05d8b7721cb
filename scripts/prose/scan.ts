// Scanner for comments and strings of a TypeScript file. It skips regular expressions.

/** A comment, its position, and whether it is alone on its line. */
type Span = { start: number; end: number; isBlock: boolean; isAlone: boolean }
/** A string or a template. Expressions in a template are replaced by "CODE". */
type StringText = { start: number; text: string }

/** Words that a regular expression may follow. */
const beforeExpression = /(?:^|[^\w$.])(?:return|typeof|case|of|in|do|else|yield|await|void|throw|new|delete)$/

/** Comments and strings, in the order of their ends. Each `//` line is one comment. */
export function scan(content: string): { comments: Span[]; strings: StringText[] } {
  const comments: Span[] = []
  const strings: StringText[] = []
  /** Open templates, the innermost last. Each has the depth of braces in its expression. */
  const templates: { start: number; parts: string[]; depth: number }[] = []
  let at = 0
  const skipTo = (pattern: RegExp): void => {
    pattern.lastIndex = at
    at = pattern.exec(content) ? pattern.lastIndex : content.length
  }
  /** Skips text of the innermost template, up to its end or its next expression. */
  const template = (): void => {
    const open = templates.at(-1)!
    const start = at
    skipTo(/(?:\\[\s\S]|\$(?!\{)|[^\\`$])*(?:`|\$\{)/y)
    if (content.startsWith('${', at - 2)) {
      open.parts.push(content.slice(start, at - 2))
      return
    }
    open.parts.push(content.slice(start, at - 1))
    templates.pop()
    strings.push({ start: open.start, text: open.parts.join('CODE') })
  }
  while (at < content.length) {
    const [start, one] = [at, content[at]!]
    const two = content.slice(at, at + 2)
    if (two === '//' || two === '/*') {
      skipTo(two === '//' ? /[^\n]*/y : /[\s\S]*?\*\//y)
      const isAlone = content.slice(content.lastIndexOf('\n', start - 1) + 1, start).trim() === ''
      comments.push({ start, end: at, isBlock: two === '/*', isAlone })
      continue
    }
    at++
    const inside = templates.at(-1)
    if (one === "'" || one === '"') {
      skipTo(one === "'" ? /(?:\\.|[^'\\\n])*'?/y : /(?:\\.|[^"\\\n])*"?/y)
      strings.push({ start, text: content.slice(start + 1, at - 1) })
    } else if (one === '`') {
      templates.push({ start, parts: [], depth: 0 })
      template()
    } else if (one === '{' && inside) inside.depth++
    else if (one === '}' && inside) {
      if (inside.depth > 0) inside.depth--
      else template()
    } else if (one === '/' && isExpression(content, start)) skipTo(/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])*\/?/y)
  }
  return { comments, strings }
}

/** True if the slash begins a regular expression. False if it is a division. */
function isExpression(content: string, slash: number): boolean {
  const before = content.slice(Math.max(0, slash - 200), slash).trimEnd()
  return before === '' || /[(,=:[!&|?{};+\-*%~^<>]$/.test(before) || beforeExpression.test(before)
}
