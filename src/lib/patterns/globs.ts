// Patterns in which `*` matches any text, also an empty one, and every other character matches itself.

export type Glob = readonly string[]

export function readGlob(pattern: string): Glob {
  return pattern.split('*')
}

/** Matches each piece between two stars at its first position, so the text is read only once. */
export function matchesGlob(glob: Glob, text: string): boolean {
  const [first, last] = [glob[0]!, glob.at(-1)!]
  if (glob.length === 1) return text === first
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
  let at = first.length
  const end = text.length - last.length
  for (const piece of glob.slice(1, -1)) {
    const found = text.indexOf(piece, at)
    if (found < 0 || found + piece.length > end) return false
    at = found + piece.length
  }
  return true
}
