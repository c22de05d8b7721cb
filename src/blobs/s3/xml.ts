// Minimal XML parser for S3 responses. Attributes of elements are ignored.

/** Content of each element with this name, as XML. */
export function elementsOf(xml: string, name: string): string[] {
  const found: string[] = []
  const [open, close] = [`<${name}>`, `</${name}>`]
  for (let at = xml.indexOf(open); at !== -1; at = xml.indexOf(open, at)) {
    const end = xml.indexOf(close, at)
    if (end === -1) break
    found.push(xml.slice(at + open.length, end))
    at = end + close.length
  }
  return found
}

/** Text of the first element with this name. Undefined if there is none. */
export function textOf(xml: string, name: string): string | undefined {
  const [first] = elementsOf(xml, name)
  return first?.replace(/&(?:(lt|gt|amp|quot|apos)|#(\d+)|#x([\da-fA-F]+));/g, (_, word, decimal, hex) =>
    word ? entities[word]! : String.fromCodePoint(decimal ? Number(decimal) : Number.parseInt(hex, 16)),
  )
}

/** Escapes the characters that XML reserves. */
export const escaped = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')

const entities: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }
