// The few things that we read in what S3 answers: elements without attributes that matter.

/** What is in each element of the name, still as XML. */
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

/** The text of the first element of the name. */
export function textOf(xml: string, name: string): string | undefined {
  const [first] = elementsOf(xml, name)
  return first?.replace(/&(?:(lt|gt|amp|quot|apos)|#(\d+)|#x([\da-fA-F]+));/g, (_, word, decimal, hex) =>
    word ? entities[word]! : String.fromCodePoint(decimal ? Number(decimal) : Number.parseInt(hex, 16)),
  )
}

/** A text as it stands inside of an element. */
export const escaped = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')

const entities: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }
