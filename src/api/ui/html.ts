// HTML templates. Every inserted value is escaped as text, unless it was made here.

/** A piece of HTML. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Part = string | number | Html | undefined | false | readonly Part[]

/** Builds HTML. Every `${}` is text, except for HTML, lists of it, and empty values. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(strings.map((one, i) => one + (i < parts.length ? toText(parts[i]) : '')).join(''))
}

export function textOf({ text }: Html): string {
  return text
}

/** Marks a text as HTML. Only for our own text. */
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
