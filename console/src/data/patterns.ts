// Patterns of tags in a rule. `*` stands for any characters, and no pattern means all tags.

export function isAbout(
  { tags, exceptTags }: { tags: readonly string[]; exceptTags: readonly string[] },
  name: string,
): boolean {
  const isOneOf = (patterns: readonly string[]) => patterns.some((pattern) => fits(pattern.split('*'), name))
  return (tags.length === 0 || isOneOf(tags)) && !isOneOf(exceptTags)
}

/**
 * Checks whether a text consists of these parts, with any text between them. A regular expression with many stars could take
 * forever, so none is used.
 */
function fits(parts: readonly string[], text: string): boolean {
  const [first, last] = [parts[0]!, parts.at(-1)!]
  if (parts.length === 1) return text === first
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
  const end = text.length - last.length
  let at = first.length
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at)
    if (found < 0 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}
