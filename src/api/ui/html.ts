// HTML templates. Inserted values are escaped as text, except HTML from this module.

/** HTML text that needs no more escaping. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Part = string | number | Html | undefined | false | readonly Part[]

/** Creates HTML. Each `${}` is escaped as text, except HTML and lists of it. Empty values are left out. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(strings.map((one, i) => one + (i < parts.length ? toText(parts[i]) : '')).join(''))
}

export function textOf({ text }: Html): string {
  return text
}

/** Marks a text as HTML, without escaping. Only for text from our own code. */
export function raw(text: string): Html {
  return new Html(text)
}

function toText(part: Part): string {
  if (part === undefined || part === false) return ''
  if (part instanceof Html) return part.text
  if (Array.isArray(part)) return part.map(toText).join('')
  return escaped(String(part))
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (one) => entities[one]!)
}
