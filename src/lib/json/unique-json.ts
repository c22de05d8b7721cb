import { scanJson } from './json-limits.ts'

const maxDepth = 256

/**
 * Parses JSON. Refuses an object that has the same member twice, since parsers disagree on which value is used. Also refuses deep
 * nesting.
 */
export function parseUniqueJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  let at = 0
  let depth = 0
  const skipSpace = () => {
    while (at < text.length && ' \t\n\r'.includes(text[at]!)) at++
  }
  const skipString = (): string => {
    const start = at++
    while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
    at++
    return JSON.parse(text.slice(start, at)) as string
  }
  /** The text is known to be valid JSON here, so the scan only needs to find the ends of strings, objects and arrays. */
  const skipValue = (): void => {
    if (++depth > maxDepth) throw new SyntaxError('the text is nested too deeply')
    skipSpace()
    if (text[at] === '{') skipMembers()
    else if (text[at] === '[') skipElements()
    else if (text[at] === '"') skipString()
    else while (at < text.length && !',]} \t\n\r'.includes(text[at]!)) at++
    skipSpace()
    depth--
  }
  const skipMembers = (): void => {
    const seen = new Set<string>()
    at++
    skipSpace()
    while (text[at] !== '}') {
      skipSpace()
      const name = skipString()
      if (seen.has(name)) throw new SyntaxError(`the member ${JSON.stringify(name.slice(0, 64))} occurs twice`)
      seen.add(name)
      skipSpace()
      at++
      skipValue()
      if (text[at] === ',') at++
    }
    at++
  }
  const skipElements = (): void => {
    at++
    skipSpace()
    while (text[at] !== ']') {
      skipValue()
      if (text[at] === ',') at++
    }
    at++
  }
  skipValue()
  return value
}

const noLimits = { depth: Infinity, members: Infinity }

/**
 * Describes a member that an object of JSON text has twice. Undefined if there is none. `json` is the parsed value, in which
 * JSON.parse has dropped the first of the two. Parses the text again only if it has more members than the value.
 */
export function repeatedMember(bytes: Uint8Array, json: unknown): string | undefined {
  const inText = scanJson(bytes, noLimits)
  if (typeof inText === 'string' || inText <= countMembers(json)) return undefined
  try {
    parseUniqueJson(new TextDecoder().decode(bytes))
    return undefined
  } catch (error) {
    return `is ambiguous: ${(error as Error).message}`
  }
}

/** Number of members and elements at all depths. */
function countMembers(json: unknown): number {
  if (typeof json !== 'object' || json === null) return 0
  const values: unknown[] = Array.isArray(json) ? json : Object.values(json)
  return values.reduce<number>((sum, value) => sum + countMembers(value), values.length)
}
