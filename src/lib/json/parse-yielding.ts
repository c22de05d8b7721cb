// Parser of large JSON texts that spreads the work over several turns of the event loop. `JSON.parse` cannot be interrupted, and
// takes more than 10 ms for 4 MiB. Its result also stays in memory while other requests run, so one text is parsed at a time.
import { FairQueue } from '../scheduling/fair-queue.ts'
import { createYielder } from '../scheduling/yielder.ts'
import { endOfString, isSpace, scanElements } from './json-limits.ts'

/** Number of bytes that are passed to `JSON.parse` at once. It takes less than a millisecond for them. */
const sliceBytes = 64 * 1024
/** Number of bytes of a text above which it is worth to use this parser. */
export const largeBytes = sliceBytes
/** Maximum number of nested objects and arrays that are split. Each level scans the text again. */
const mostLevels = 4

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const waiting = new FairQueue<() => void>()
let isBusy = false

/** True if the value of a member is needed. `path` has the names of the members around it too, and `''` for each list. */
export type Needs = (path: readonly string[]) => boolean

/**
 * Parses JSON in UTF-8 like `JSON.parse`, with the same results and errors. Large members that are not needed are not parsed, and
 * are null in the result. Yields to other work. Among waiting texts, the caller that has used the least time goes first.
 */
export async function parseYielding(bytes: Uint8Array, needs: Needs = () => true): Promise<unknown> {
  if (isBusy) await new Promise<void>((resume) => waiting.push(resume))
  isBusy = true
  try {
    return await parse(bytes, needs)
  } finally {
    const next = waiting.take()
    if (next) next.item()
    else isBusy = false
  }
}

async function parse(bytes: Uint8Array, needs: Needs): Promise<unknown> {
  const yielder = createYielder()
  const slices = parseValue({ bytes, needs }, [0, bytes.length], [])
  try {
    for (;;) {
      const { done, value } = slices.next()
      if (done) return value
      if (yielder.isDue()) await yielder.next()
    }
  } catch {
    await yielder.next()
    // Describes the error for the whole text.
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  }
}

type Text = { bytes: Uint8Array; needs: Needs }
/** Start and end of a part of the text. */
type Span = readonly [start: number, end: number]
type Values = Record<string, unknown> | unknown[]

/** Parses a value. Yields before each slice. Throws if the text is not JSON. */
function* parseValue(text: Text, [start, end]: Span, path: readonly string[]): Generator<void, unknown> {
  const { bytes } = text
  let [from, to] = [start, end]
  while (from < to && isSpace(bytes[from]!)) from++
  while (from < to && isSpace(bytes[to - 1]!)) to--
  const brackets = String.fromCharCode(bytes[from]!, bytes[to - 1]!)
  const isObject = brackets === '{}'
  if (to - from <= sliceBytes || path.length === mostLevels || !(isObject || brackets === '[]')) {
    yield
    return JSON.parse(utf8.decode(bytes.subarray(from, to)))
  }
  const all: Values = isObject ? {} : []
  let first = from + 1
  for (const [begin, comma] of scanElements(bytes, first, to - 1)) {
    if (comma - begin > sliceBytes) {
      if (begin > first) yield* parseElements(bytes, [first, begin - 1], all)
      if (Array.isArray(all)) all.push(yield* parseValue(text, [begin, comma], [...path, '']))
      else yield* parseMember(text, [begin, comma], path, all)
    } else if (comma - first > sliceBytes || comma === to - 1) yield* parseElements(bytes, [first, comma], all)
    else continue
    first = comma + 1
  }
  return all
}

/** Parses several elements or members at once, and adds them to `all`. */
function* parseElements(bytes: Uint8Array, [start, end]: Span, all: Values): Generator<void> {
  yield
  const text = utf8.decode(bytes.subarray(start, end))
  // The text between two commas is never empty.
  if (text.trim() === '') throw new SyntaxError('an element is missing')
  if (Array.isArray(all)) for (const one of JSON.parse(`[${text}]`)) all.push(one)
  else for (const [name, value] of Object.entries(JSON.parse(`{${text}}`))) setMember(all, name, value)
}

/** Parses a large member, and adds it to `all`. */
function* parseMember(
  text: Text,
  [start, end]: Span,
  path: readonly string[],
  all: Record<string, unknown>,
): Generator<void> {
  const { bytes, needs } = text
  let from = start
  while (isSpace(bytes[from]!)) from++
  if (bytes[from] !== 0x22) throw new SyntaxError('a name is missing')
  const quote = endOfString(bytes, from)
  let colon = quote + 1
  while (isSpace(bytes[colon]!)) colon++
  if (colon >= end || bytes[colon] !== 0x3a) throw new SyntaxError('a colon is missing')
  const name: string = JSON.parse(utf8.decode(bytes.subarray(from, quote + 1)))
  const within = [...path, name]
  setMember(all, name, needs(within) ? yield* parseValue(text, [colon + 1, end], within) : null)
}

/** Sets a member as `JSON.parse` does. A plain assignment to `__proto__` would change the prototype instead. */
function setMember(all: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') all[name] = value
  else Object.defineProperty(all, name, { value, writable: true, enumerable: true, configurable: true })
}
