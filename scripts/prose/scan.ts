// Positions of the comments of a TypeScript file. Strings, templates and regular expressions are passed over.

/** Position of a comment, and whether it stands alone on its line. */
type Place = { start: number; end: number; isBlock: boolean; isAlone: boolean }

/** Words that a regular expression may follow. */
const beforeExpression = /(?:^|[^\w$.])(?:return|typeof|case|of|in|do|else|yield|await|void|throw|new|delete)$/

/** Comments in the order of the file. Each line with `//` is one. */
export function commentsOf(content: string): Place[] {
  const places: Place[] = []
  /** Depth of braces in each template that is open, the innermost last. */
  const templates: number[] = []
  let at = 0
  const skipTo = (pattern: RegExp): void => {
    pattern.lastIndex = at
    at = pattern.exec(content) ? pattern.lastIndex : content.length
  }
  /** Passes over text of a template, up to its end or its next expression. */
  const template = (): void => {
    skipTo(/(?:\\[\s\S]|\$(?!\{)|[^\\`$])*(?:`|\$\{)/y)
    if (content.startsWith('${', at - 2)) templates.push(0)
  }
  while (at < content.length) {
    const [start, one] = [at, content[at]!]
    const two = content.slice(at, at + 2)
    if (two === '//' || two === '/*') {
      skipTo(two === '//' ? /[^\n]*/y : /[\s\S]*?\*\//y)
      const isAlone = content.slice(content.lastIndexOf('\n', start - 1) + 1, start).trim() === ''
      places.push({ start, end: at, isBlock: two === '/*', isAlone })
      continue
    }
    at++
    if (one === "'" || one === '"') skipTo(one === "'" ? /(?:\\.|[^'\\\n])*'?/y : /(?:\\.|[^"\\\n])*"?/y)
    else if (one === '`') template()
    else if (one === '{' && templates.length > 0) templates.push(templates.pop()! + 1)
    else if (one === '}' && templates.length > 0) {
      const depth = templates.pop()!
      if (depth > 0) templates.push(depth - 1)
      else template()
    } else if (one === '/' && isExpression(content, start)) skipTo(/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])*\/?/y)
  }
  return places
}

/** True if the slash begins a regular expression and is no division. */
function isExpression(content: string, slash: number): boolean {
  const before = content.slice(Math.max(0, slash - 200), slash).trimEnd()
  return before === '' || /[(,=:[!&|?{};+\-*%~^<>]$/.test(before) || beforeExpression.test(before)
}
