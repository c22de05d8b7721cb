import { WrongRecord } from './values.ts'

/** Limits on the bytes of one field, and on the nesting of its value. */
const maxMemberBytes = 16 * 1024 * 1024

const [quote, backslash, colon, comma] = [0x22, 0x5c, 0x3a, 0x2c]
const [openObject, closeObject, openList, closeList] = [0x7b, 0x7d, 0x5b, 0x5d]

/**
 * Yields the fields of a JSON object in a stream, in order. Each has the text of its value. Only one field is in memory. Throws
 * WrongRecord if the stream is not such an object. The caller must parse the values, which also validates them.
 */
export async function* membersOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<[name: string, text: string]> {
  let parts: Buffer[] = []
  let size = 0
  let [depth, inText, escaped, ended] = [0, false, false, false]
  let name: string | undefined
  const keep = (chunk: Buffer): void => {
    size += chunk.length
    if (size > maxMemberBytes) throw new WrongRecord(`a member has more than ${maxMemberBytes} bytes`)
    parts.push(chunk)
  }
  const take = (): string => {
    const text = Buffer.concat(parts).toString('utf8').trim()
    parts = []
    size = 0
    return text
  }
  for await (const one of stream) {
    const chunk = Buffer.from(one.buffer, one.byteOffset, one.byteLength)
    let start = 0
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i]!
      if (inText) {
        if (escaped) escaped = false
        else if (byte === backslash) escaped = true
        else if (byte === quote) inText = false
        continue
      }
      if (byte === quote) inText = true
      else if (byte === openObject || byte === openList) {
        if (depth++ === 0) {
          if (byte !== openObject || ended) throw new WrongRecord('the document must be an object')
          start = i + 1
        }
      } else if (depth === 1 && byte === colon && name === undefined) {
        keep(chunk.subarray(start, i))
        name = nameOf(take())
        start = i + 1
      } else if (byte === closeObject || byte === closeList || (depth === 1 && byte === comma)) {
        if (byte !== comma) depth--
        const isEnd = depth === 0
        if (!isEnd && byte !== comma) continue
        keep(chunk.subarray(start, i))
        const text = take()
        start = i + 1
        ended = isEnd
        if (name === undefined && !(isEnd && text === '')) throw new WrongRecord('a member has no name')
        if (name !== undefined) yield [name, text]
        name = undefined
      }
    }
    if (depth > 0) keep(Buffer.from(chunk.subarray(start)))
  }
  if (!ended) throw new WrongRecord('the document is incomplete')
}

function nameOf(text: string): string {
  try {
    const name: unknown = JSON.parse(text)
    if (typeof name === 'string') return name
  } catch {
    // The error is thrown below.
  }
  throw new WrongRecord('a member has no name')
}
