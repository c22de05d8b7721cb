// Limits on JSON text, checked before JSON.parse builds values from it.

/** `members` counts object members and array elements together, at all depths. */
export type JsonLimits = { depth: number; members: number }

const quote = 0x22
const backslash = 0x5c

const [other, text, open, close, comma] = [0, 1, 2, 3, 4]
/** Role of each byte in JSON text, if the byte is outside of a string. */
const roles = new Uint8Array(256)
for (const [role, bytes] of [
  [text, '"'],
  [open, '{['],
  [close, '}]'],
  [comma, ','],
] as const) {
  for (const byte of Buffer.from(bytes)) roles[byte] = role
}

/**
 * Description of the limit that JSON text exceeds. Undefined if the text is within the limits. Scans the bytes once, and does not
 * check that they are JSON, since the parser does.
 */
export function jsonProblem(bytes: Uint8Array, limits: JsonLimits): string | undefined {
  const scanned = scanJson(bytes, limits)
  return typeof scanned === 'string' ? scanned : undefined
}

/** Number of members and elements of JSON text. If the text exceeds a limit, returns its description, as `jsonProblem` does. */
export function scanJson(bytes: Uint8Array, limits: JsonLimits): number | string {
  const { length } = bytes
  let depth = 0
  let members = 0
  for (let at = 0; at < length; at++) {
    const role = roles[bytes[at]!]!
    if (role === other) continue
    if (role === text) at = endOfString(bytes, at)
    else if (role === comma) members++
    else if (role === close) depth = Math.max(0, depth - 1)
    else {
      if (++depth > limits.depth) return `is nested deeper than ${limits.depth} levels`
      at = lastSpaceAfter(bytes, at)
      // Counts the first member here, since each comma counts one more. An empty object or array has none.
      if (at + 1 < length && roles[bytes[at + 1]!] !== close) members++
    }
    if (members > limits.members) return `has more than ${limits.members} members and elements`
  }
  return members
}

/**
 * Start and end of each element or member between two positions, which are inside of an object or array. Throws if the end is
 * not the end of that object or array.
 */
export function* scanElements(bytes: Uint8Array, start: number, end: number): Generator<[start: number, end: number]> {
  let [depth, begin] = [0, start]
  for (let at = start; at < end; at++) {
    const role = roles[bytes[at]!]!
    if (role === other) continue
    if (role === text) at = endOfString(bytes, at)
    else if (role === open) depth++
    else if (role === close && --depth < 0) break
    else if (role === comma && depth === 0) {
      yield [begin, at]
      begin = at + 1
    }
    if (at >= end) depth = -1
  }
  if (depth !== 0) throw new SyntaxError('an object or array does not end')
  yield [begin, end]
}

/** Number of bytes of a string that are compared one by one. For the rest, the built-in search is faster. */
const stepBytes = 32

/** Position of the closing quote, or the end of the text if there is none. */
export function endOfString(bytes: Uint8Array, start: number): number {
  const { length } = bytes
  for (let [at, step] = [start + 1, stepBytes]; at < length; step *= 2) {
    for (const end = Math.min(length, at + step); at < end; at++) {
      const byte = bytes[at]
      if (byte === quote) return at
      if (byte === backslash) at++
    }
    // `at` is the start of a character here, so only backslashes from `at` on can escape the found quote.
    const found = bytes.indexOf(quote, at)
    if (found < 0) return length
    let escapes = found
    while (escapes > at && bytes[escapes - 1] === backslash) escapes--
    if ((found - escapes) % 2 === 0) return found
    at = found + 1
  }
  return length
}

function lastSpaceAfter(bytes: Uint8Array, start: number): number {
  let at = start
  while (at + 1 < bytes.length && isSpace(bytes[at + 1]!)) at++
  return at
}

export function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
