/** Finds the lines on which the values of a valid JSON text start. Lines begin with 1, and paths look like `packages[3].name`. */
export function linesOf(text: string): Map<string, number> {
  const lines = new Map<string, number>()
  let at = 0
  let line = 1
  const skipSpace = () => {
    for (; at < text.length && ' \t\n\r'.includes(text[at]!); at++) if (text[at] === '\n') line++
  }
  const readString = (): string => {
    const start = at++
    while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
    return JSON.parse(text.slice(start, ++at)) as string
  }
  const readValue = (path: string): void => {
    skipSpace()
    lines.set(path, line)
    if (text[at] === '{') readMembers(path)
    else if (text[at] === '[') readElements(path)
    else if (text[at] === '"') readString()
    else while (at < text.length && !',]} \t\n\r'.includes(text[at]!)) at++
    skipSpace()
  }
  const readMembers = (path: string): void => {
    at++
    for (skipSpace(); text[at] !== '}'; skipSpace()) {
      const name = readString()
      skipSpace()
      at++ // the colon
      readValue(path === '' ? name : `${path}.${name}`)
      if (text[at] === ',') at++
    }
    at++
  }
  const readElements = (path: string): void => {
    at++
    skipSpace()
    for (let i = 0; text[at] !== ']'; i++) {
      readValue(`${path}[${i}]`)
      if (text[at] === ',') at++
    }
    at++
  }
  readValue('')
  return lines
}

/** Line of a value. If the value is missing, the line of the nearest existing value around it. */
export function lineIn(lines: ReadonlyMap<string, number>, path: string): number {
  for (let at = path; at !== ''; at = at.replace(/(?:^|\.)[^.[\]]*$|\[\d+\]$/, '')) {
    const line = lines.get(at)
    if (line !== undefined) return line
  }
  return lines.get('') ?? 1
}
