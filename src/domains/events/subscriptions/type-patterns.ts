/** Whether one of the patterns matches the whole type; no patterns match every type. `*` stands for any text. */
export function matchesType(patterns: readonly string[], type: string): boolean {
  return patterns.length === 0 || patterns.some((pattern) => matches(pattern, type))
}

/** Takes each piece between stars at its first place, so that it walks the type once. */
function matches(pattern: string, type: string): boolean {
  const [start, ...rest] = pattern.split('*')
  const end = rest.pop()
  if (end === undefined) return pattern === type
  if (!type.startsWith(start!)) return false
  let at = start!.length
  for (const piece of rest) {
    const found = type.indexOf(piece, at)
    if (found < 0) return false
    at = found + piece.length
  }
  return type.length - end.length >= at && type.endsWith(end)
}
